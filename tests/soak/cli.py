"""The command line: see `python -m soak --help`, or `make soak`."""

import argparse
import asyncio
import random
import shutil
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from .borrowed import KINDS, KNOWN, MODULE, TARGET, Kind
from .history import read
from .oracle import Verdict, judge
from .report import Tally, tell
from .runner.profiles import PROFILES, SAMPLE, order, quick
from .runner.session import Outcome, play

KEPT = TARGET / "soak"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="soak", description="Random sessions with faults, judged by their replies."
    )
    commands = parser.add_subparsers(required=True)

    run = commands.add_parser("run", help="play sessions and judge them")
    run.add_argument("--minutes", type=float, default=20, help="for each server (20)")
    run.add_argument("--server", choices=KNOWN, action="append", help="those of make test")
    run.add_argument("--seed", default=None, help="replays a run; one is drawn and told otherwise")
    run.add_argument(
        "--profile", choices=sorted(PROFILES), action="append", help="only such sessions"
    )
    run.add_argument("--sessions", type=int, default=None, help="so many, whatever time they take")
    run.add_argument("--quick", action="store_true", help="short sessions, as in the normal tests")
    run.add_argument(
        "--module", type=Path, default=MODULE, help="another build of DQ than the release here"
    )
    run.add_argument(
        "--keep", action="store_true", help="keep the histories in which nothing was found, too"
    )
    run.set_defaults(do=_run)

    sample = commands.add_parser("sample", help="write a small history for the tests of the oracle")
    sample.add_argument("--server", choices=KNOWN, default="redis-7.0")
    sample.add_argument("--seed", default="sample")
    sample.add_argument("file", type=Path)
    sample.set_defaults(do=_sample)

    replay = commands.add_parser("replay", help="judge histories")
    replay.add_argument("files", type=Path, nargs="+")
    replay.set_defaults(do=_replay)

    options = parser.parse_args()
    return options.do(options)


def _sample(options: argparse.Namespace) -> int:
    kind = KNOWN[options.server]
    outcome = asyncio.run(play(kind, SAMPLE, options.seed, KEPT / "sample"))
    shutil.copy(outcome.history, options.file)
    verdict = judge(read(options.file))
    for line in tell(options.file, verdict, with_evidence=False):
        print(line)
    return 0 if verdict.is_sound else 1


def _replay(options: argparse.Namespace) -> int:
    is_sound = True
    for path in options.files:
        verdict = judge(read(path))
        print(
            f"{path}: {len(verdict.violations)} violations in {verdict.counts['operations']} operations"
        )
        for line in tell(path, verdict, with_evidence=True):
            print("   ", line)
        is_sound = is_sound and verdict.is_sound
    return 0 if is_sound else 1


def _run(options: argparse.Namespace) -> int:
    seed = options.seed or str(random.SystemRandom().randrange(10**6))
    kinds = [KNOWN[name] for name in options.server] if options.server else KINDS
    is_sound = True
    with ProcessPoolExecutor(1) as judges:
        for kind in kinds:
            tally = Tally()
            for played in _sessions(options, kind, seed, judges):
                is_sound = _tell_session(tally, played, keep=options.keep) and is_sound
            print(f"\n{kind}, seed {seed}:", flush=True)
            for line in tally.lines():
                print("   ", line, flush=True)
    return 0 if is_sound else 1


class _Played:
    """A session that is judged while the next one is played."""

    def __init__(self, name: str, outcome: Outcome, verdict: "Future[Verdict]"):
        self.name = name
        self.outcome = outcome
        self.verdict = verdict


def _sessions(options: argparse.Namespace, kind: Kind, seed: str, judges: ProcessPoolExecutor):
    """Plays sessions until the time is over."""
    end = time.monotonic() + options.minutes * 60
    profiles = order(seed, options.profile)
    last: _Played | None = None
    number = 0
    while number < options.sessions if options.sessions else time.monotonic() < end:
        profile = profiles[number % len(profiles)]
        profile = quick(profile) if options.quick else replace(profile)
        name = f"{kind}/{seed}-{number}-{profile.name}"
        outcome = asyncio.run(play(kind, profile, f"{seed}-{number}", KEPT / name, options.module))
        if last is not None:
            yield last
        last = _Played(name, outcome, judges.submit(_judged, outcome.history))
        number += 1
    if last is not None:
        yield last


def _judged(path: Path) -> Verdict:
    return judge(read(path))


def _tell_session(tally: Tally, played: _Played, *, keep: bool) -> bool:
    verdict, outcome = played.verdict.result(), played.outcome
    tally.add(verdict, outcome.faults)
    is_sound = verdict.is_sound and not outcome.broken
    found = "sound" if is_sound else f"{len(verdict.violations)} VIOLATIONS"
    faults = sum(outcome.faults.values())
    print(f"{played.name}: {outcome.ops} operations, {faults} faults, {found}", flush=True)
    for line in outcome.broken:
        print("   ", line[:2_000], file=sys.stderr)
    if not is_sound:
        lines = tell(outcome.history, verdict, with_evidence=True)
        (outcome.history.parent / "violations.txt").write_text(
            "\n".join([*outcome.broken, *lines]) + "\n"
        )
        for line in tell(outcome.history, verdict, with_evidence=False):
            print("   ", line[:300], flush=True)
        print(f"    kept: {outcome.history.parent}", flush=True)
    elif not keep:
        shutil.rmtree(outcome.history.parent, ignore_errors=True)
    return is_sound

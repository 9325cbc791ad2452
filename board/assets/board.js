// What the pages do beyond HTML: they keep themselves up to date, put times into the reader's zone and
// listen to a few keys. Without it they still work.
"use strict";

// ---- times -----------------------------------------------------------------------------------------

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** The same words as `rough` in src/web/words.rs has. */
function rough(ms) {
  const seconds = Math.floor(ms / 1000);
  const first = UNITS.findIndex(([unit]) => seconds >= unit);
  if (first < 0) return "0 s";
  const [[unit, name], next] = UNITS.slice(first);
  const many = Math.floor(seconds / unit);
  const words = `${many} ${name}`;
  const rest = next && many < 10 ? Math.floor((seconds % unit) / next[0]) : 0;
  return rest ? `${words} ${rest} ${next[1]}` : words;
}

function relative(ms) {
  const ahead = ms - Date.now() - clockAhead;
  if (Math.abs(ahead) < 1000) return "now";
  return ahead > 0 ? `in ${rough(ahead)}` : `${rough(-ahead)} ago`;
}

const two = (number, digits = 2) => String(number).padStart(digits, "0");

function local(ms) {
  const at = new Date(ms);
  const minutes = -at.getTimezoneOffset();
  const zone = `${minutes < 0 ? "−" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:` +
    `${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)} ${zone}`;
}

/** By how much the server's clock is ahead of the reader's: its spans are told by its own clock. */
let clockAhead = 0;

function tell(root) {
  for (const time of root.querySelectorAll("[data-ms]")) set(time, local(Number(time.dataset.ms)));
  for (const time of root.querySelectorAll("[data-rel]")) {
    const ms = Number(time.dataset.rel);
    set(time, relative(ms));
    if (time.hasAttribute("title")) time.title = local(ms);
  }
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// ---- the page as it is now -------------------------------------------------------------------------

const main = document.getElementById("main");
const gone = document.getElementById("gone");
// The server has escaped all that isn't its own, and the page's policy runs no script of anybody else.
const policy = window.trustedTypes?.createPolicy("board", { createHTML: (html) => html });

function show(title, html) {
  const page = new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, "text/html");
  document.title = `${title} · dq`;
  tell(page.body);
  main.dispatchEvent(new CustomEvent("fresh", { detail: page.body }));
  const giveBack = holdFocus();
  bring(main, page.body);
  giveBack();
  cameFrom();
  mark();
  count();
  main.dispatchEvent(new Event("shown"));
}

const FOCUSABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";

/** What is moved or removed loses the focus. This gives it back, or to what stood next to it. */
function holdFocus() {
  const held = document.activeElement;
  if (!main.contains(held) || held === main) return () => {};
  const all = [...main.querySelectorAll(FOCUSABLE)];
  const at = all.indexOf(held);
  const near = [...all.slice(at), ...all.slice(0, at).reverse()];
  // Below the last row is another part of the page.
  const list = held.closest("tbody, ol");
  const inList = near.filter((each) => list?.contains(each));
  return () => {
    if (document.activeElement === held) return;
    const left = [...inList, ...near].find((each) => each.isConnected && each.checkVisibility());
    (left ?? main).focus({ preventScroll: true });
  };
}

/** Makes what is in `old` like what is in `fresh`, touching only what differs. */
function bring(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (child.dataset.key !== undefined) keyed.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const same = next.dataset?.key === undefined ? at : keyed.get(next.dataset.key);
    if (same && fits(same, next)) {
      if (same === at) at = at.nextSibling;
      else old.insertBefore(same, at);
      renew(same, next);
    } else {
      old.insertBefore(document.importNode(next, true), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function fits(old, fresh) {
  if (old.nodeName !== fresh.nodeName) return false;
  // Not `.id`, which in a form may be a field of that name.
  return ["id", "data-key"].every((name) => old.getAttribute?.(name) === fresh.getAttribute?.(name));
}

function renew(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // A box that stands for another death of the job now was not ticked.
  if (old.matches("input.tick") && old.getAttribute("value") !== fresh.getAttribute("value")) old.checked = false;
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // What the reader has opened stays open.
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  bring(old, fresh);
}

// ---- the stream ------------------------------------------------------------------------------------

const SILENCE_MS = 12000;
let stream;
let heard = Date.now();
const isLive = main.hasAttribute("data-live");

function listen() {
  if (!isLive) return;
  stream?.close();
  stream = new EventSource(location.href);
  stream.addEventListener("page", (event) => {
    here();
    const [title, html] = JSON.parse(event.data);
    // A selection would be lost: the reader is about to copy something.
    if (!isSelecting()) show(title, html);
  });
  stream.addEventListener("same", here);
  // The browser tries again by itself, but not after an answer that isn't a stream.
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { if (!document.hidden) listen(); }, 3000);
  });
}

function isSelecting() {
  const selection = getSelection();
  return !selection.isCollapsed && main.contains(selection.anchorNode);
}

function here() {
  heard = Date.now();
  gone.hidden = true;
}

function tick() {
  tell(main);
  if (isLive && !document.hidden && Date.now() - heard > SILENCE_MS) {
    set(document.getElementById("gone-since"), local(heard));
    gone.hidden = false;
  }
}

// A page that nobody sees needs no news: a browser has few connections to one server.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream?.close();
  } else {
    heard = Date.now();
    listen();
    goOn();
  }
});

// ---- the page before -------------------------------------------------------------------------------

// The address of a page says behind which job it begins, and nobody knows what was on the one before it:
// this tab remembers from where the reader came.

const before = (url) => `before ${url}`;

main.addEventListener("click", (event) => {
  const next = event.target.closest("a[rel=next]");
  if (!next) return;
  try {
    sessionStorage.setItem(before(next.href), location.href);
  } catch {
    // Full, or forbidden: the browser's own way back is left.
  }
});

function cameFrom() {
  const link = main.querySelector("[data-came-from]");
  if (!link) return;
  const url = sessionStorage.getItem(before(location.href));
  if (url) link.href = url;
  link.hidden = !url;
}

// ---- a search that takes long ----------------------------------------------------------------------

// A page looks through a queue for half a second and says where to go on. This goes on, and keeps what
// was found.

async function goOn() {
  const link = main.querySelector("a[data-goes-on]");
  if (!link || document.hidden) return;
  const url = new URL(link.href);
  // Nothing is fetched from an address that has a password in it. The browser knows it already.
  url.username = url.password = "";
  let text;
  try {
    const answer = await fetch(url);
    if (!answer.ok) return;
    text = await answer.text();
  } catch {
    // The link is still there, for the reader.
    return;
  }
  if (!link.isConnected) return;
  const page = new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
  const fresh = page.getElementById("main");
  if (!fresh) return;
  const found = [...main.querySelectorAll("[data-found] > tr")].map((each) => each.cloneNode(true));
  fresh.querySelector("[data-found]")?.prepend(...found);
  tell(fresh);
  const giveBack = holdFocus();
  bring(main, fresh);
  giveBack();
  cameFrom();
  mark();
  count();
  setTimeout(goOn, 0);
}

// ---- jobs that are ticked --------------------------------------------------------------------------

const ticks = () => [...main.querySelectorAll("input.tick")];

/** Says how many are ticked. */
function count() {
  const label = document.getElementById("ticked");
  if (!label) return;
  const all = ticks();
  const many = all.filter((each) => each.checked).length;
  set(label, `${many} ticked`);
  const whole = document.getElementById("tick-all");
  whole.checked = many > 0 && many === all.length;
  whole.indeterminate = many > 0 && many < all.length;
}

main.addEventListener("change", (event) => {
  if (event.target.id === "tick-all") {
    for (const each of ticks()) each.checked = event.target.checked;
  }
  count();
});

/** The box that was ticked last: with Shift all from there to the next one are. */
let last = null;

function ticked(box, isRange) {
  const all = ticks();
  const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
  if (isRange && from >= 0) for (const each of all.slice(from, to + 1)) each.checked = box.checked;
  last = box;
  count();
}

main.addEventListener("click", (event) => {
  if (event.target.matches("input.tick")) ticked(event.target, event.shiftKey);
});

/** Ticks the job of the row that the reader is at, or no more. */
function toggle(isRange) {
  const box = rows().find((each) => row !== null && each.dataset.key === row)?.querySelector("input.tick");
  if (!box) return false;
  box.checked = isRange || !box.checked;
  ticked(box, isRange);
  return true;
}

// ---- keys ------------------------------------------------------------------------------------------

const help = document.getElementById("help");
const dialog = document.getElementById("keys");
/** The key of the row that the reader is at: rows come and go. */
let row = null;

function rows() {
  return [...main.querySelectorAll(".reasons li, tbody tr")].filter((each) => each.offsetParent !== null);
}

function mark() {
  for (const each of rows()) each.classList.toggle("at", row !== null && each.dataset.key === row);
}

function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((each) => each.dataset.key === row);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  row = next.dataset.key;
  mark();
  next.querySelector("a")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

const go = (selector) => main.querySelector(selector)?.click();

function find() {
  const field = document.getElementById("jump") ?? document.getElementById("search");
  field.focus();
  field.select();
}

/** The one that lies over the page; what was typed stays in it. */
function closePanel() {
  const panel = main.querySelector("details[name=panel][open]");
  if (!panel) return false;
  panel.open = false;
  panel.querySelector("summary").focus();
  return true;
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  n: () => go("a[rel=next]"),
  p: () => go("a[rel=prev]"),
  u: () => go("a[rel=up]"),
  x: () => toggle(false),
  X: () => toggle(true),
  s: () => main.querySelector(".selection button, .selection a")?.focus(),
  f: () => document.getElementById("find")?.focus(),
  "/": find,
  "?": () => dialog.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.key === "Escape" && closePanel()) return;
  // A box to tick takes no text.
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const act = /^[1-8]$/.test(event.key)
    ? () => main.querySelectorAll(".tabs a")[Number(event.key) - 1]?.click()
    : KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  } else if (event.key === " " && event.target.closest("tbody a") && toggle(false)) {
    event.preventDefault();
  }
});

help.hidden = false;
help.addEventListener("click", () => dialog.showModal());
main.addEventListener("focusin", (event) => {
  const at = event.target.closest("tbody tr, .reasons li");
  if (at) {
    row = at.dataset.key;
    mark();
  }
});

clockAhead = Number(main.dataset.now ?? Date.now()) - Date.now();
document.documentElement.classList.add("scripted");
tell(main);
cameFrom();
count();
goOn();
{
  // On a phone there are more tabs than fit. Not by `scrollIntoView`: the Tab key would begin there.
  const tab = main.querySelector(".tabs [aria-current]");
  const bar = tab?.parentElement;
  if (tab) bar.scrollLeft += Math.max(tab.getBoundingClientRect().right - bar.getBoundingClientRect().right, 0);
}
setInterval(tick, 1000);
if (!document.hidden) listen();

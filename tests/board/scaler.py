"""What KEDA is to an external scaler: a gRPC client."""

import sys
from pathlib import Path
from typing import Any

import grpc

PROTO = Path(__file__).resolve().parents[2] / "board" / "proto"
# Where grpcio-tools looks for the file, which it compiles.
sys.path.append(str(PROTO))
MESSAGES, SERVICES = grpc.protos_and_services("externalscaler.proto")

# A machine that is busy with other tests answers late.
WITHIN_S = 20


class Scaler:
    def __init__(self, port: int):
        self.port = port
        # A connection of its own: channels to the same address share one otherwise.
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=options)
        self._calls = SERVICES.ExternalScalerStub(self.channel)

    def __enter__(self) -> "Scaler":
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def is_active(self, within_s: float = WITHIN_S, /, **metadata: str) -> bool:
        return self._calls.IsActive(about(metadata), timeout=within_s, wait_for_ready=True).result

    def target(self, **metadata: str) -> tuple[str, float]:
        """The metric's name, and how much of it one worker is for."""
        (spec,) = self._calls.GetMetricSpec(about(metadata), timeout=WITHIN_S).metricSpecs
        assert spec.targetSize == spec.targetSizeFloat
        return spec.metricName, spec.targetSizeFloat

    def jobs(self, **metadata: str) -> float:
        name, _ = self.target(**metadata)
        request = MESSAGES.GetMetricsRequest(scaledObjectRef=about(metadata), metricName=name)
        (value,) = self._calls.GetMetrics(request, timeout=WITHIN_S).metricValues
        assert value.metricName == name and value.metricValue == value.metricValueFloat
        return value.metricValueFloat

    def activity(self, **metadata: str) -> Any:
        """A stream of answers; `cancel` ends it."""
        return self._calls.StreamIsActive(about(metadata), timeout=60)


def about(metadata: dict[str, str]) -> Any:
    return MESSAGES.ScaledObjectRef(
        name="mail-workers", namespace="default", scalerMetadata=metadata
    )

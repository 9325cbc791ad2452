/**
 * OpenTelemetry, for those who have `@opentelemetry/api`. A job carries the context in which it was
 * made, in its envelope. The span of its handler is a child of the span that made it. Names and
 * attributes are those of the semantic conventions for messaging.
 */

import {
  type Attributes,
  context,
  propagation,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import type { Tracing } from "./commands/base.ts";
import type { Delivery } from "./replies.ts";

/** For `new Queue(client, name, { tracing })`: with the global provider, or this one. */
export function tracing(provider: TracerProvider = trace.getTracerProvider()): Tracing {
  const tracer: Tracer = provider.getTracer("dq-client");
  return {
    headers(queue) {
      const attributes = attributesOf(queue, "create");
      const span = tracer.startSpan(`create ${queue}`, { kind: SpanKind.PRODUCER, attributes });
      const headers: Record<string, string> = {};
      propagation.inject(trace.setSpan(context.active(), span), headers);
      span.end();
      return headers;
    },
    processing: (job, work) => processed(tracer, job, work),
  };
}

function processed<T>(tracer: Tracer, job: Delivery, work: () => Promise<T>): Promise<T> {
  const attributes = {
    ...attributesOf(job.key, "process"),
    "messaging.message.id": job.id,
    "dq.attempt": job.attempt,
  };
  const made = propagation.extract(context.active(), job.headers);
  const given = { kind: SpanKind.CONSUMER, attributes };
  return tracer.startActiveSpan(`process ${job.key}`, given, made, async (span) => {
    try {
      return await work();
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      span.setAttribute("error.type", name);
      span.setStatus({ code: SpanStatusCode.ERROR, message });
      throw error;
    } finally {
      span.end();
    }
  });
}

function attributesOf(queue: string, operation: string): Attributes {
  return {
    "messaging.system": "dq",
    "messaging.destination.name": queue,
    "messaging.operation.name": operation,
    "messaging.operation.type": operation,
  };
}

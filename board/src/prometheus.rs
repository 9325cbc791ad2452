//! What charts are drawn from, read from a Prometheus that scrapes /metrics: with --prometheus.
//!
//! A chart is one question, whose answer has a series for each figure. Answers are kept for a
//! while, so open pages don't ask every two seconds.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::uri::{Authority, PathAndQuery, Uri};
use axum::http::{header, HeaderValue, Method, Request, StatusCode};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::bytes::link;
use crate::metrics::label;
use crate::server::Name;
use crate::watch::{Figure, Row, Span, Table};

/// For the whole answer; a page waits for it.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// The most that is read of an answer: one of 288 steps and nine series is some 60 kB.
const ANSWER_MAX: usize = 2 << 20;
/// Questions at a time.
const QUESTIONS_MAX: usize = 4;
/// How long an answer is good, also one that says what is wrong.
const GOOD_FOR: Duration = Duration::from_secs(15);
const ANSWERS_MAX: usize = 200;
/// What happens between the last scrape in one window and the first in the next would be in neither,
/// if windows didn't overlap.
const OVERLAP_S: u64 = 60;

type Answer = Result<Table, String>;
/// The name of a server, and a queue, or all queues.
type Asked = (String, Option<Name>, Span);

pub struct Prometheus {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
    authorization: Option<HeaderValue>,
    matcher: String,
    places: Semaphore,
    answers: Mutex<HashMap<Asked, (Instant, Answer)>>,
}

/// The address of the API, and what a user and a password in it become.
#[derive(Debug, PartialEq)]
struct Address {
    url: Uri,
    authorization: Option<HeaderValue>,
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, &'static str> {
        const WRONG: &str = "--prometheus must be http[s]://[user:password@]host[:port][/path]";
        let url: Uri = text.parse().map_err(|_| WRONG)?;
        let mut parts = url.into_parts();
        let scheme = parts.scheme.as_ref().map(|scheme| scheme.as_str());
        let authority = parts.authority.take().ok_or(WRONG)?;
        if !matches!(scheme, Some("http" | "https")) {
            return Err(WRONG);
        }
        let (user, host) = match authority.as_str().rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority.as_str()),
        };
        let authorization = user.map(|user| {
            let plain: Vec<u8> = percent_decode_str(user).collect();
            HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain)))
        });
        let path = parts.path_and_query.as_ref().map_or("", |path| path.path());
        let path = format!("{}/api/v1/query_range", path.trim_end_matches('/'));
        parts.authority = Some(host.parse::<Authority>().map_err(|_| WRONG)?);
        parts.path_and_query = Some(path.parse::<PathAndQuery>().map_err(|_| WRONG)?);
        Ok(Address {
            url: Uri::from_parts(parts).map_err(|_| WRONG)?,
            authorization: authorization.transpose().map_err(|_| WRONG)?,
        })
    }
}

impl Prometheus {
    pub fn new(url: &str, matcher: &str) -> Result<Prometheus, String> {
        let Address { url, authorization } = url.parse()?;
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(|error| format!("--prometheus: {error}"))?
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Prometheus {
            client: Client::builder(TokioExecutor::new()).build(connector),
            url,
            authorization,
            matcher: matcher.into(),
            places: Semaphore::new(QUESTIONS_MAX),
            answers: Mutex::new(HashMap::new()),
        })
    }

    /// Figures of a queue of this server, or of all its queues; or in words why there are none. A
    /// server without a name is the only one.
    pub async fn table(
        &self,
        server: &str,
        queue: Option<&[u8]>,
        span: Span,
        now_ms: u64,
    ) -> Answer {
        let key = (server.to_string(), queue.map(Name::from), span);
        if let Some(answer) = self.kept(&key) {
            return answer;
        }
        let answer = timeout(ANSWER_WITHIN, async {
            let _place = self.places.acquire().await;
            // Who had the place before may have asked the same.
            match self.kept(&key) {
                Some(answer) => answer,
                None => self.ask(server, queue, span, now_ms).await,
            }
        });
        let answer = answer
            .await
            .unwrap_or_else(|_| Err(format!("it gave no answer within {ANSWER_WITHIN:?}")));
        let mut answers = self.answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if answers.len() >= ANSWERS_MAX {
            answers.retain(|_, (at, _)| at.elapsed() < GOOD_FOR);
        }
        if answers.len() < ANSWERS_MAX {
            answers.insert(key, (Instant::now(), answer.clone()));
        }
        answer
    }

    /// Those that series must have.
    fn labels(&self, server: &str, queue: Option<&[u8]>) -> String {
        let server =
            (!server.is_empty()).then(|| format!("redis=\"{}\"", label(server.as_bytes())));
        let queue = queue.map(|name| format!("queue=\"{}\"", label(name)));
        let own = Some(self.matcher.clone()).filter(|matcher| !matcher.is_empty());
        [server, queue, own].into_iter().flatten().collect::<Vec<_>>().join(",")
    }

    fn kept(&self, key: &Asked) -> Option<Answer> {
        let answers = self.answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (_, answer) = answers.get(key).filter(|(at, _)| at.elapsed() < GOOD_FOR)?;
        Some(answer.clone())
    }

    async fn ask(&self, server: &str, queue: Option<&[u8]>, span: Span, now_ms: u64) -> Answer {
        let times = Times::of(span, now_ms);
        let question = times.question(&self.labels(server, queue));
        let form = link("", &question.each_ref().map(|(name, value)| (*name, value.as_bytes())));
        let form = form.trim_start_matches('?').to_string();
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.url.clone())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::from(form)).map_err(|error| error.to_string())?;
        let answer = self.client.request(request).await.map_err(|error| in_words(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        read(status, &body, &times)
    }
}

/// An error and what is behind it.
fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// When slots end: at whole steps, so an answer differs from the one before in its end alone.
struct Times {
    first_end_s: u64,
    step_s: u64,
    slots: u64,
    /// Over how long a slot's figures are taken.
    window_s: u64,
}

impl Times {
    fn of(span: Span, now_ms: u64) -> Times {
        // Two scrapes at least have to be in each window, and many scrape once a minute.
        let (slots, step_s) = match span {
            Span::Hour => (60, 60),
            Span::Day | Span::Week => (span.slots() as u64, span.slot_ms() / 1_000),
        };
        let last_end_s = (now_ms / 1_000).div_ceil(step_s).saturating_mul(step_s);
        let first_end_s = last_end_s.saturating_sub((slots - 1) * step_s);
        Times { first_end_s, step_s, slots, window_s: step_s + OVERLAP_S }
    }

    fn question(&self, labels: &str) -> [(&'static str, String); 4] {
        let last_end_s = self.first_end_s + (self.slots - 1) * self.step_s;
        [
            ("query", self.expression(labels)),
            ("start", self.first_end_s.to_string()),
            ("end", last_end_s.to_string()),
            ("step", self.step_s.to_string()),
        ]
    }

    /// A series for each figure, by the label `figure`. Several dq-boards may tell of one queue.
    fn expression(&self, labels: &str) -> String {
        let (step, window) = (self.step_s, self.window_s);
        let sum = |metric: &str| {
            format!("sum(max by (queue) (rate(dq_{metric}_total{{{labels}}}[{window}s])))")
        };
        let jobs = |metric: &str| format!("{} * {step}", sum(metric));
        let late = |share: f64| {
            format!(
                "1000 * histogram_quantile({share}, sum by (le) (max by (queue, le) \
                 (rate(dq_lateness_seconds_bucket{{{labels}}}[{window}s]))))"
            )
        };
        let figure = |figure: Figure| {
            let value = match figure {
                Figure::Added => jobs("added"),
                Figure::Delivered => jobs("delivered"),
                Figure::Finished => jobs("finished"),
                Figure::Failed => format!(
                    "({} + {} + {}) * {step}",
                    sum("released"),
                    sum("timed_out"),
                    sum("buried")
                ),
                Figure::Dead => jobs("dead"),
                Figure::Ready => {
                    let ready = [labels, "state=\"ready\""];
                    let ready: Vec<_> = ready.into_iter().filter(|part| !part.is_empty()).collect();
                    let labels = ready.join(",");
                    format!("sum(max by (queue) (max_over_time(dq_jobs{{{labels}}}[{step}s])))")
                }
                Figure::OldestReady => {
                    format!(
                        "1000 * max(max_over_time(dq_oldest_ready_seconds{{{labels}}}[{step}s]))"
                    )
                }
                Figure::LateP50 => late(0.5),
                Figure::LateP99 => late(0.99),
            };
            format!("label_replace({value}, \"figure\", \"{}\", \"\", \"\")", figure.name())
        };
        let most_late = [labels, "quantile=\"1\""];
        let most_late: Vec<_> = most_late.into_iter().filter(|part| !part.is_empty()).collect();
        let most_late = format!(
            "label_replace(1000 * max(max_over_time(dq_lateness_quantile_seconds{{{}}}[{window}s])), \
             \"figure\", \"{MOST_LATE}\", \"\", \"\")",
            most_late.join(",")
        );
        format!("{} or {most_late}", Figure::ALL.map(figure).join(" or "))
    }
}

/// No figure of a chart: how late the latest job was. Estimates of lateness aren't above it.
const MOST_LATE: &str = "most late";

/// What Prometheus says.
fn read(status: StatusCode, body: &[u8], times: &Times) -> Answer {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let text = |name: &str| json.as_ref()?.get(name)?.as_str();
    if let Some(error) = text("error") {
        return Err(format!("it says: {}", error.chars().take(500).collect::<String>()));
    }
    let series = json.as_ref().and_then(|json| json.pointer("/data/result")?.as_array());
    let Some(series) = series.filter(|_| text("status") == Some("success")) else {
        return Err(format!("it answers {status}, not as a Prometheus does"));
    };
    let slots = usize::try_from(times.slots).unwrap_or(0);
    let mut rows = vec![Row::default(); slots];
    let mut most_late = vec![None; slots];
    for one in series {
        let name = one.pointer("/metric/figure").and_then(Value::as_str);
        let figure = Figure::ALL.into_iter().find(|figure| Some(figure.name()) == name);
        let values = one.get("values").and_then(Value::as_array).into_iter().flatten();
        for (end, value) in values.filter_map(point) {
            let slot = ((end - times.first_end_s as f64) / times.step_s as f64).round();
            let Some(slot) = (slot >= 0.0).then_some(slot as usize) else { continue };
            let cell = match figure {
                Some(figure) => rows.get_mut(slot).and_then(|row| row.get_mut(figure as usize)),
                None if name == Some(MOST_LATE) => most_late.get_mut(slot),
                None => None,
            };
            if let Some(cell) = cell {
                *cell = Some(value);
            }
        }
    }
    for (row, most) in rows.iter_mut().zip(most_late) {
        for figure in [Figure::LateP50, Figure::LateP99] {
            if let (Some(Some(late)), Some(most)) = (row.get_mut(figure as usize), most) {
                *late = late.min(most);
            }
        }
    }
    let start_ms = times.first_end_s.saturating_sub(times.step_s) * 1_000;
    Ok(Table { start_ms, slot_ms: times.step_s * 1_000, rows })
}

/// A time in seconds and a value in text. A histogram without deliveries has NaN.
fn point(pair: &Value) -> Option<(f64, f64)> {
    let value: f64 = pair.get(1)?.as_str()?.parse().ok()?;
    let end = pair.get(0)?.as_f64()?;
    value.is_finite().then_some((end, value.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<(String, Option<String>), &'static str> {
        let address: Address = text.parse()?;
        let authorization = address.authorization.map(|value| value.to_str().unwrap().to_string());
        Ok((address.url.to_string(), authorization))
    }

    #[test]
    fn a_user_and_a_password_become_a_header() {
        let plain = |url: &str| Ok((url.to_string(), None));
        assert_eq!(address("http://p:9090"), plain("http://p:9090/api/v1/query_range"));
        assert_eq!(address("https://p/prom/"), plain("https://p/prom/api/v1/query_range"));
        let (url, authorization) = address("https://ann:s%40cret@p:1/x").unwrap();
        assert_eq!(url, "https://p:1/x/api/v1/query_range");
        assert_eq!(authorization.as_deref(), Some("Basic YW5uOnNAY3JldA=="));
        for wrong in ["p:9090", "ftp://p", "/path", "", "http://"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_can_t_leave_its_quotes() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let prometheus = Prometheus::new("http://p", "job=\"dq\"").unwrap();
        let expression =
            Times::of(Span::Hour, 0).expression(&prometheus.labels("", Some(b"a\"b\\c\nd")));
        assert!(
            expression.contains(r#"dq_added_total{queue="a\"b\\\\c\\nd",job="dq"}[120s]"#),
            "{expression}"
        );
        assert!(expression.contains(r#",job="dq",state="ready"}[60s]"#), "{expression}");
        assert_eq!(prometheus.labels("orders", None), "redis=\"orders\",job=\"dq\"");
        let all = Times::of(Span::Week, 0).expression("");
        assert!(all.contains("dq_dead_total{}[3660s]"), "{all}");
    }

    #[test]
    fn slots_end_at_whole_steps_and_the_last_one_is_now() {
        for span in Span::ALL {
            let now_ms = 1_700_000_123_456;
            let times = Times::of(span, now_ms);
            assert_eq!(times.first_end_s % times.step_s, 0);
            let table =
                read(StatusCode::OK, br#"{"status":"success","data":{"result":[]}}"#, &times)
                    .unwrap();
            let end = table.start_ms + table.slot_ms * table.rows.len() as u64;
            assert!(end >= now_ms && end - now_ms < table.slot_ms, "{span:?}");
        }
    }

    #[test]
    fn an_answer_is_read_into_its_slots() {
        let times = Times { first_end_s: 600, step_s: 60, slots: 4, window_s: 120 };
        let body = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"figure":"added"},"values":[[600,"2.5"],[720,"4"],[7200,"9"],[0,"1"]]},
            {"metric":{"figure":"late p50"},"values":[[660,"NaN"],[720,"15"],[780,"12"]]},
            {"metric":{"figure":"most late"},"values":[[660,"13"],[720,"13"],[780,"13"]]},
            {"metric":{"figure":"later"},"values":[[600,"1"]]}]}}"#;
        let table = read(StatusCode::OK, body, &times).unwrap();
        assert_eq!((table.start_ms, table.slot_ms), (540_000, 60_000));
        let column = |figure| table.column(figure).collect::<Vec<_>>();
        assert_eq!(column(Figure::Added), [Some(2.5), None, Some(4.0), None]);
        assert_eq!(column(Figure::LateP50), [None, None, Some(13.0), Some(12.0)]);
    }

    #[test]
    fn what_is_wrong_is_said_in_its_words() {
        let times = Times::of(Span::Hour, 0);
        let error = br#"{"status":"error","errorType":"bad_data","error":"parse error: x"}"#;
        let why = read(StatusCode::BAD_REQUEST, error, &times).unwrap_err();
        assert_eq!(why, "it says: parse error: x");
        let why = read(StatusCode::UNAUTHORIZED, b"Unauthorized\n", &times).unwrap_err();
        assert_eq!(why, "it answers 401 Unauthorized, not as a Prometheus does");
    }
}

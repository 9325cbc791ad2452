//! Who is let in, and the headers that keep a page to itself.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::Extension;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use subtle::ConstantTimeEq;

use super::guesses::{Guesses, Trace};
use super::passwords::Passwords;
use super::users::{User, Users};
use super::{Board, Visit};
use crate::args::{Args, Verb};
use crate::bytes::{excerpt, Shown};
use crate::serve::Peer;

/// Nothing from elsewhere, no inline script or style, no framing; strings don't become markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types board";

/// What the log has of a name that any client may have written: a head of a request can be large.
const LOGGED: usize = 200;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// As [`Shown`]; empty where no reader is asked for a name.
    pub name: String,
    pub address: IpAddr,
}

/// A request, before it is known whose it is.
pub struct Asked<'r> {
    pub address: IpAddr,
    /// Whether it comes from a proxy of --trusted-proxy, right away.
    pub is_from_proxy: bool,
    pub headers: &'r HeaderMap,
}

pub struct Guard {
    /// `user:password`.
    auth: Option<String>,
    users: Option<Arc<Users>>,
    passwords: Passwords,
    /// In which a proxy says which user asks.
    user_header: Option<HeaderName>,
    /// What a reader may do at most.
    verbs: Vec<Verb>,
    guesses: Guesses,
    hosts: Vec<String>,
    is_any_host_right: bool,
}

impl Guard {
    pub fn new(args: &Args) -> Result<Guard, String> {
        let mut hosts = vec!["localhost".to_string()];
        hosts.extend(args.host.iter().map(|host| host.to_ascii_lowercase()));
        hosts.extend(args.public_url.iter().map(|url| url.host.clone()));
        // A page that asks for a password, or that was opened to all, has nothing to fear from
        // names.
        let is_any_host_right =
            (args.asks_who() || args.no_auth || args.metrics_only) && args.host.is_empty();
        let users = args.users.as_ref().map(|path| Users::read(path).map(Arc::new)).transpose()?;
        Ok(Guard {
            auth: args.auth.clone(),
            users,
            passwords: Passwords::new()?,
            user_header: args.user_header.clone(),
            verbs: args.verbs(),
            guesses: Guesses::default(),
            hosts,
            is_any_host_right,
        })
    }

    /// Keeps up with --users, for ever.
    pub async fn follow_users(&self) {
        if let Some(users) = &self.users {
            users.clone().follow().await;
        }
    }

    /// Which reading of --users the rights are of.
    pub fn as_of(&self) -> u64 {
        self.users.as_ref().map_or(0, |users| users.readings())
    }

    /// The reader and what they may do, or what they are told instead.
    async fn check(&self, asked: &Asked<'_>) -> Result<(Reader, Vec<Verb>), Refusal> {
        if let Some(header) = &self.user_header {
            if asked.is_from_proxy {
                return self.named_by_proxy(header, asked);
            }
            // Any client could write that header: here it says nothing.
            if self.auth.is_none() && self.users.is_none() {
                let why = "only a proxy of --trusted-proxy may ask: see --user-header\n";
                return Err(refused(StatusCode::FORBIDDEN, why));
            }
        } else if self.auth.is_none() && self.users.is_none() {
            return Ok((asked.reader(b""), self.verbs.clone()));
        }
        let Some(given) = credentials(asked.headers) else { return Err(ask()) };
        self.wait_for_guesses(asked)?;
        // A page that is open while its reader's password changes goes on with the old one: that is
        // one guess, not many, and looked at once.
        let trace = self.passwords.trace(&self.as_of().to_string(), &given);
        if self.guesses.was_last(asked.address, trace) {
            return Err(ask());
        }
        let (name, password) = halves(&given);
        let verbs = match &self.users {
            None => self.check_only_user(asked, &given, trace),
            Some(users) => self.check_user(asked, users, (name, password), trace).await?,
        };
        if let Some(verbs) = verbs {
            return Ok((asked.reader(name), verbs));
        }
        tracing::warn!(from = %asked.address, user = excerpt(name, LOGGED), "a wrong name or password");
        Err(ask())
    }

    /// The user of --auth. To be right once makes up for guesses: there is no other account to
    /// guess at.
    fn check_only_user(
        &self,
        asked: &Asked,
        given: &[u8],
        trace: Option<Trace>,
    ) -> Option<Vec<Verb>> {
        let is_right = self.auth.as_ref().is_some_and(|auth| given.ct_eq(auth.as_bytes()).into());
        if is_right {
            self.guesses.was_right(asked.address);
        } else {
            self.guesses.was_wrong(asked.address, trace, Instant::now());
        }
        is_right.then(|| self.verbs.clone())
    }

    async fn check_user(
        &self,
        asked: &Asked<'_>,
        users: &Users,
        (name, password): (&[u8], &[u8]),
        trace: Option<Trace>,
    ) -> Result<Option<Vec<Verb>>, Refusal> {
        let user = std::str::from_utf8(name).ok().and_then(|name| users.get(name));
        let hash = user.as_ref().and_then(|user| user.hash.as_deref());
        let is_known = hash.is_some_and(|hash| self.passwords.knows(hash, password));
        let is_right = is_known || {
            let Some(turn) = self.passwords.turn().await else {
                let why = "too many passwords are being checked: try again\n";
                return Err(refused(StatusCode::SERVICE_UNAVAILABLE, why));
            };
            // Many guesses may have come at once, and been wrong meanwhile.
            self.wait_for_guesses(asked)?;
            let mut guess = Guess { guard: self, address: asked.address, trace, is_right: false };
            guess.is_right = self.passwords.check(turn, hash, password).await;
            guess.is_right
        };
        Ok(user.filter(|_| is_right).map(|user| self.at_most(&user)))
    }

    /// One name in one header: two of them mean that the proxy lets through what others write.
    fn named_by_proxy(
        &self,
        header: &HeaderName,
        asked: &Asked,
    ) -> Result<(Reader, Vec<Verb>), Refusal> {
        let mut names = asked.headers.get_all(header).iter().map(|name| name.as_bytes());
        let (Some(name), None) = (names.next().map(<[u8]>::trim_ascii), names.next()) else {
            let why = "the proxy must name one user: see --user-header\n";
            return Err(refused(StatusCode::FORBIDDEN, why));
        };
        let user = std::str::from_utf8(name).ok().filter(|name| !name.is_empty());
        let verbs = match (&self.users, user) {
            (None, Some(_)) => Some(self.verbs.clone()),
            (Some(users), Some(name)) => users.get_or_others(name).map(|user| self.at_most(&user)),
            (_, None) => None,
        };
        verbs.map(|verbs| (asked.reader(name), verbs)).ok_or_else(|| {
            tracing::warn!(from = %asked.address, user = excerpt(name, LOGGED), "a user without rights");
            refused(StatusCode::FORBIDDEN, "you have no rights here: see --users\n")
        })
    }

    /// Without --writable no reader changes anything, whatever a file says.
    fn at_most(&self, user: &User) -> Vec<Verb> {
        let is_allowed = |verb: &Verb| user.verbs.contains(verb);
        self.verbs.iter().copied().filter(is_allowed).collect()
    }

    fn wait_for_guesses(&self, asked: &Asked) -> Result<(), Refusal> {
        let Some(wait) = self.guesses.wait(asked.address, Instant::now()) else { return Ok(()) };
        let wait = [(header::RETRY_AFTER, wait.as_secs_f64().ceil().to_string())];
        let why = "too many wrong passwords came from your address: wait a minute\n";
        Err(Box::new((StatusCode::TOO_MANY_REQUESTS, wait, why).into_response()))
    }

    /// A web site can have its own name point to this address, and its scripts may then read what
    /// is served here: unless the page answers to no such name.
    fn is_meant(&self, headers: &HeaderMap) -> bool {
        if self.is_any_host_right {
            return true;
        }
        let host =
            headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = name_of(host).to_ascii_lowercase();
        name.parse::<IpAddr>().is_ok() || self.hosts.contains(&name)
    }
}

/// A password that is being checked. It counts as wrong unless it was right: also when its reader
/// went away before that was known, or to go away would be a way to make many checks.
struct Guess<'g> {
    guard: &'g Guard,
    address: IpAddr,
    trace: Option<Trace>,
    is_right: bool,
}

impl Drop for Guess<'_> {
    fn drop(&mut self) {
        if !self.is_right {
            self.guard.guesses.was_wrong(self.address, self.trace, Instant::now());
        }
    }
}

impl Asked<'_> {
    fn reader(&self, name: &[u8]) -> Reader {
        Reader { name: Shown(name).to_string(), address: self.address }
    }
}

/// A name has no colon in it.
fn halves(given: &[u8]) -> (&[u8], &[u8]) {
    let mut halves = given.splitn(2, |byte| *byte == b':');
    (halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
}

/// What the reader gave, `user:password`. None when there is nothing of that kind.
fn credentials(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, coded) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let coded = Some(coded.trim()).filter(|_| scheme.eq_ignore_ascii_case("basic"));
    Some(STANDARD.decode(coded?).unwrap_or_default())
}

type Refusal = Box<Response>;

fn refused(status: StatusCode, why: &'static str) -> Refusal {
    Box::new((status, why).into_response())
}

fn ask() -> Refusal {
    let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"dq-board\", charset=\"UTF-8\"")];
    (StatusCode::UNAUTHORIZED, ask, "a name and a password are needed\n").into_response().into()
}

/// The name in a Host header, without the port and an IPv6 address's brackets.
fn name_of(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

/// A request that comes further has what it is answered from: the [`Visit`].
pub async fn let_in(
    State(board): State<Arc<Board>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    if !board.guard.is_meant(request.headers()) {
        let why = "dq-board isn't called by this name: see --host\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let asked = Asked {
        address: board.proxies.reader(peer, request.headers()),
        is_from_proxy: board.proxies.has(peer),
        headers: request.headers(),
    };
    let as_of = board.guard.as_of();
    let (reader, verbs) = match board.guard.check(&asked).await {
        Ok(known) => known,
        Err(answer) => return *answer,
    };
    let forms = board.forms.clone();
    request.extensions_mut().insert(Arc::new(Visit { verbs, reader, forms, board, as_of }));
    next.run(request).await
}

/// The headers of every answer.
pub async fn seal(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn guard(line: &str) -> Guard {
        Guard::new(
            &Args::try_parse_from(["dq-board"].into_iter().chain(line.split_whitespace())).unwrap(),
        )
        .unwrap()
    }

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        [(name, HeaderValue::from_str(value).unwrap())].into_iter().collect()
    }

    #[test]
    fn a_web_site_s_own_name_is_refused() {
        let is_meant = |line: &str, host: &str| guard(line).is_meant(&headers(header::HOST, host));
        for host in ["127.0.0.1:8377", "localhost:8377", "LOCALHOST", "[::1]:8377", "10.1.2.3"] {
            assert!(is_meant("", host), "{host}");
        }
        for host in ["evil.example:8377", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!is_meant("", host), "{host}");
        }
        assert!(is_meant("--host Board.example", "board.example:80"));
        assert!(!is_meant("--host board.example", "evil.example"));
        assert!(is_meant("--auth a:b", "board.example"));
        assert!(!guard("").is_meant(&HeaderMap::new()));
    }

    /// What a request is answered with, or who asks and what they may do.
    async fn told(guard: &Guard, is_from_proxy: bool, headers: &HeaderMap) -> Result<String, u16> {
        let address = IpAddr::from([10, 0, 0, 1]);
        let known = guard.check(&Asked { address, is_from_proxy, headers }).await;
        let verbs = |verbs: Vec<Verb>| verbs.iter().map(|v| v.name()).collect::<Vec<_>>().join(",");
        known
            .map(|(reader, may)| format!("{}:{}", reader.name, verbs(may)))
            .map_err(|answer| answer.status().as_u16())
    }

    fn basic(given: &str) -> HeaderMap {
        headers(header::AUTHORIZATION, &format!("Basic {}", STANDARD.encode(given)))
    }

    #[tokio::test]
    async fn a_request_without_the_password_is_refused() {
        assert_eq!(told(&guard(""), false, &HeaderMap::new()).await, Ok(":".into()));
        let guard = guard("--auth ann:secret --writable --allow kick");
        assert_eq!(told(&guard, false, &HeaderMap::new()).await, Err(401));
        let given =
            async |given: &str| told(&guard, false, &headers(header::AUTHORIZATION, given)).await;
        for right in ["Basic YW5uOnNlY3JldA==", "basic YW5uOnNlY3JldA==", "BASIC  YW5uOnNlY3JldA=="]
        {
            assert_eq!(given(right).await, Ok("ann:kick".into()), "{right}");
        }
        for wrong in
            ["Basic YW5uOnNlY3JldA=", "Basic YW5uOmd1ZXNz", "Bearer YW5uOnNlY3JldA==", "Basic", ""]
        {
            assert_eq!(given(wrong).await, Err(401), "{wrong}");
        }
        for _ in 0..20 {
            assert_eq!(given("Basic YW5uOmd1ZXNz").await, Err(401), "the same one is one guess");
        }
        let mut last = Err(401);
        for n in 0..20 {
            last = told(&guard, false, &basic(&format!("ann:guess-{n}"))).await;
        }
        assert_eq!(last, Err(429));
        let why = "whoever guesses waits, also with the right one";
        assert_eq!(given("Basic YW5uOnNlY3JldA==").await, Err(429), "{why}");
        assert_eq!(told(&guard, false, &HeaderMap::new()).await, Err(401), "that is no guess");
    }

    fn guard_with(users: &str, line: &str) -> Guard {
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        let name = format!("dq-board-users-{}", u64::from_le_bytes(random));
        let path = std::env::temp_dir().join(name);
        let hash = crate::web::passwords::hash(b"secret").unwrap();
        std::fs::write(&path, users.replace("HASH", &hash)).unwrap();
        let guard = guard(&format!("--users {} {line}", path.display()));
        std::fs::remove_file(&path).unwrap();
        guard
    }

    #[tokio::test]
    async fn a_user_has_the_rights_of_both_the_file_and_the_command_line() {
        let users = "ann:HASH:all\nbob:HASH:kick,purge\ncid:HASH:read\ndan:-:all\n*:-:all\n";
        let guard = guard_with(users, "--writable --allow kick,pause");
        for (given, right) in [
            ("ann:secret", Ok("ann:kick,pause".into())),
            ("bob:secret", Ok("bob:kick".into())),
            ("cid:secret", Ok("cid:".into())),
            ("ann:secret", Ok("ann:kick,pause".into())),
            ("ann:guess", Err(401)),
            ("bob:", Err(401)),
            ("dan:secret", Err(401)),
            ("dan:", Err(401)),
            ("*:", Err(401)),
            ("eve:secret", Err(401)),
        ] {
            assert_eq!(told(&guard, false, &basic(given)).await, right, "{given}");
        }
        assert_eq!(
            told(&guard_with(users, ""), false, &basic("ann:secret")).await,
            Ok("ann:".into())
        );
    }

    /// Else a reader with a password could guess at that of another for ever.
    #[tokio::test]
    async fn a_right_password_does_not_make_up_for_guesses_at_others() {
        let guard = guard_with("ann:HASH:all\nbob:HASH:read\n", "");
        let mut last = Ok(String::new());
        for n in 0..11 {
            last = told(&guard, false, &basic(&format!("ann:guess-{n}"))).await;
            if last.is_err_and(|status| status == 429) {
                last = Err(429);
                break;
            }
            last = told(&guard, false, &basic("bob:secret")).await;
        }
        assert_eq!(last, Err(429));
    }

    #[tokio::test]
    async fn who_goes_away_before_a_password_was_checked_has_guessed() {
        let guard = guard_with("ann:HASH:all\n", "");
        for n in 0..10 {
            // Who still waits for a turn hasn't guessed.
            drop(guard.passwords.turn().await);
            let headers = basic(&format!("ann:guess-{n}"));
            let gone = tokio::time::timeout(
                std::time::Duration::from_millis(1),
                told(&guard, false, &headers),
            );
            let _ = gone.await;
        }
        assert_eq!(told(&guard, false, &basic("ann:secret")).await, Err(429));
    }

    #[tokio::test]
    async fn only_the_proxy_s_header_names_a_user() {
        const HEADER: &str = "--user-header X-Forwarded-User --trusted-proxy 10.0.0.9 --writable";
        let named = |name: &str| headers(HeaderName::from_static("x-forwarded-user"), name);
        let all = guard(HEADER);
        assert_eq!(
            told(&all, true, &named("ann")).await,
            Ok(format!("ann:{}", Verb::ALL.map(Verb::name).join(",")))
        );
        assert_eq!(told(&all, false, &named("ann")).await, Err(403), "anybody could write that");
        assert_eq!(told(&all, true, &HeaderMap::new()).await, Err(403));
        assert_eq!(told(&all, true, &named(" ")).await, Err(403));
        let mut two = named("eve");
        two.append("x-forwarded-user", HeaderValue::from_static("ann"));
        assert_eq!(
            told(&all, true, &two).await,
            Err(403),
            "the proxy lets others' headers through"
        );

        let some = guard_with("ann:-:kick\nbob:HASH:read\n", HEADER);
        assert_eq!(told(&some, true, &named("ann")).await, Ok("ann:kick".into()));
        assert_eq!(told(&some, true, &named("eve")).await, Err(403));
        assert_eq!(told(&some, true, &named("*")).await, Err(403));
        assert_eq!(told(&some, true, &basic("bob:secret")).await, Err(403), "it must name one");
        assert_eq!(told(&some, false, &named("ann")).await, Err(401));
        assert_eq!(told(&some, false, &basic("bob:secret")).await, Ok("bob:".into()));

        let others = guard_with("ann:-:kick\n*:-:read\n", HEADER);
        assert_eq!(told(&others, true, &named("eve")).await, Ok("eve:".into()));
        assert_eq!(told(&others, false, &named("eve")).await, Err(401));
    }
}

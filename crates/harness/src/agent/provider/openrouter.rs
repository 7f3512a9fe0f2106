//! A model behind an OpenAI-compatible chat API: OpenRouter, or any server that speaks the same.

use super::chat::{self, NoAnswer};
use super::{OfferedTool, Provider, ProviderError, ProviderFuture};
use crate::agent::message::{Message, Turn};
use crate::present::printable;
use serde_json::Value;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use ureq::http::{HeaderValue, Uri, header};

/// Where OpenRouter is.
const DEFAULT_BASE_URL: &str = "https://openrouter.ai/api/v1";
/// OpenRouter's own choice among models.
const DEFAULT_MODEL: &str = "openrouter/auto";
/// An answer longer than this, in bytes, is not read to its end.
const LARGEST_ANSWER: u64 = 16 * 1024 * 1024;
/// What a server may ask to be waited for at most, and the longest pause of our own.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A model behind an OpenAI-compatible chat API with tools.
///
/// A request is tried again after 408, 429 and every 5xx, after a broken connection, a cut body, an empty answer and a
/// time that was up: after a pause that doubles from one second to one minute, or the one that `Retry-After` names, of
/// which one minute counts at most. Redirects are not followed, so that the key goes nowhere else. The key is in no error
/// and no `Debug` output, and is taken out of what the server says. A proxy is used where `HTTPS_PROXY` and the like
/// name one, and never for this machine. Certificates are checked against Mozilla's list, which is part of the program.
///
/// ```
/// use cmdgate_harness::OpenRouter;
/// let model = OpenRouter::new("a-key")?.with_model("some/model").with_base_url("http://localhost:8080/v1")?;
/// assert_eq!(model.model(), "some/model");
/// assert!(!format!("{model:?}").contains("a-key"));
/// # Ok::<(), cmdgate_harness::agent::ProviderError>(())
/// ```
#[derive(Clone)]
pub struct OpenRouter {
    key: String,
    header: HeaderValue,
    model: String,
    base_url: String,
    url: String,
    local: bool,
    attempts: u32,
    pause: Duration,
    times: Times,
    told: Option<Told>,
}

/// Is told of an attempt that failed.
pub type Told = Arc<dyn Fn(&Retry<'_>) + Send + Sync>;

/// An attempt that failed, and what comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry<'r> {
    /// Why, as the error would say it if it were the last attempt.
    pub why: &'r ProviderError,
    /// How long is waited now.
    pub pause: Duration,
    /// The number of the attempt that comes then.
    pub attempt: u32,
    /// The number of the last one that there can be.
    pub attempts: u32,
}

/// How long an answer may take.
#[derive(Debug, Clone, Copy)]
struct Times {
    connect: Duration,
    read: Duration,
    total: Duration,
}

impl fmt::Debug for OpenRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRouter")
            .field("url", &self.url)
            .field("model", &self.model)
            .field("attempts", &self.attempts)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl OpenRouter {
    /// From the environment: `OPENROUTER_API_KEY` must be there; `OPENROUTER_MODEL` is `openrouter/auto` and
    /// `OPENROUTER_BASE_URL` is `https://openrouter.ai/api/v1` where they are missing or empty.
    ///
    /// # Errors
    ///
    /// When there is no key, or one of them cannot be used.
    pub fn from_env() -> Result<Self, ProviderError> {
        let text = |name: &'static str| match std::env::var(name) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(ProviderError::Setting { name, problem: "is no text".to_owned() })
            }
        };
        let key = text("OPENROUTER_API_KEY")?.ok_or(ProviderError::NoKey)?;
        let mut model = Self::new(key)?;
        if let Some(name) = text("OPENROUTER_MODEL")? {
            model = model.with_model(name);
        }
        match text("OPENROUTER_BASE_URL")? {
            Some(url) => model.with_base_url(&url),
            None => Ok(model),
        }
    }

    /// With this key, at OpenRouter. Until they are set: its own choice of a model, five attempts, 10 seconds to
    /// connect, five minutes between two signs of life, fifteen minutes for an answer with all attempts.
    ///
    /// # Errors
    ///
    /// When the key is empty or has other characters than a header can have.
    pub fn new(key: impl Into<String>) -> Result<Self, ProviderError> {
        let key = key.into();
        if key.trim().is_empty() {
            return Err(ProviderError::NoKey);
        }
        let unusable = |problem: &str| ProviderError::Setting {
            name: "OPENROUTER_API_KEY",
            problem: problem.to_owned(),
        };
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unusable("has a space or a character that a key cannot have"));
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {key}"))
            .map_err(|_| unusable("has a character that a key cannot have"))?;
        header.set_sensitive(true);
        Self {
            key,
            header,
            model: DEFAULT_MODEL.to_owned(),
            base_url: String::new(),
            url: String::new(),
            local: false,
            attempts: 5,
            pause: Duration::from_secs(1),
            times: Times {
                connect: Duration::from_secs(10),
                read: Duration::from_mins(5),
                total: Duration::from_mins(15),
            },
            told: None,
        }
        .with_base_url(DEFAULT_BASE_URL)
    }

    /// Asks this model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Asks the server at this address, to which `/chat/completions` is added. Over `http` the key can be read by
    /// whoever carries it, so use that for this machine or a network that you trust.
    ///
    /// # Errors
    ///
    /// When it is no `http` or `https` address, or holds a name, a password, a query or a fragment.
    pub fn with_base_url(mut self, url: &str) -> Result<Self, ProviderError> {
        let unusable = |problem: &str| {
            Err(ProviderError::Setting { name: "OPENROUTER_BASE_URL", problem: problem.to_owned() })
        };
        let base = url.trim().trim_end_matches('/');
        let no_address = "is no address that begins with https:// or http://";
        let Ok(uri) = base.parse::<Uri>() else { return unusable(no_address) };
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return unusable(no_address);
        };
        if authority.as_str().contains('@') {
            return unusable("holds a name or a password; the key goes into OPENROUTER_API_KEY");
        }
        if uri.query().is_some() || base.contains('#') {
            return unusable("has a query or a fragment");
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        self.local =
            host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback());
        base.clone_into(&mut self.base_url);
        self.url = format!("{base}/chat/completions");
        Ok(self)
    }

    /// Tries at most so often, at least once, with a first pause of this length. No pause is longer than a minute.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32, first_pause: Duration) -> Self {
        self.attempts = attempts.max(1);
        self.pause = first_pause;
        self
    }

    /// Waits at most so long for a connection, between two signs of life of the server, and for an answer with all of
    /// its attempts.
    #[must_use]
    pub const fn with_timeouts(mut self, connect: Duration, read: Duration, total: Duration) -> Self {
        self.times = Times { connect, read, total };
        self
    }

    /// Tells `told` of every attempt that failed and is made again, before the pause.
    #[must_use]
    pub fn with_retries_told(mut self, told: Told) -> Self {
        self.told = Some(told);
        self
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The server's address.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    async fn ask(&self, question: Value) -> Result<Turn, ProviderError> {
        let body: Arc<[u8]> = question.to_string().into_bytes().into();
        let begun = Instant::now();
        let mut attempts = 1;
        loop {
            let left = self.times.total.saturating_sub(begun.elapsed());
            let failure = match self.ask_once(body.clone(), left).await {
                Ok(turn) => return Ok(turn),
                Err(failure) => failure,
            };
            let pause = self.pause(failure.pause, attempts);
            let in_time = begun.elapsed().saturating_add(pause) < self.times.total;
            if !failure.may_pass || attempts >= self.attempts || !in_time {
                return Err(self.error(failure.what, attempts, begun.elapsed()));
            }
            attempts += 1;
            if let Some(told) = &self.told {
                let why = self.error(failure.what, attempts - 1, begun.elapsed());
                told(&Retry { why: &why, pause, attempt: attempts, attempts: self.attempts });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// How long to wait after so many attempts: what the server asks for, or our own, and never more than a minute.
    fn pause(&self, asked: Option<Duration>, attempts: u32) -> Duration {
        asked.unwrap_or_else(|| self.pause_after(attempts)).min(LONGEST_PAUSE)
    }

    /// Twice the pause before, and up to a quarter more, so that those who failed together do not come back together.
    fn pause_after(&self, attempts: u32) -> Duration {
        let doubled = self.pause.saturating_mul(1 << (attempts - 1).min(16));
        let share = u32::try_from(RandomState::new().hash_one(attempts) % 256).unwrap_or(0);
        doubled.saturating_add(doubled / 4 / 256 * share)
    }

    async fn ask_once(&self, body: Arc<[u8]>, left: Duration) -> Result<Turn, Failure> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(0)
            .user_agent(concat!("cmdgate/", env!("CARGO_PKG_VERSION")))
            .timeout_global(Some(left))
            .timeout_resolve(Some(self.times.connect))
            .timeout_connect(Some(self.times.connect))
            .timeout_per_read(Some(self.times.read))
            .timeout_per_write(Some(self.times.read));
        let config = if self.local { config.proxy(None) } else { config };
        let agent: ureq::Agent = config.build().into();
        let (url, header) = (self.url.clone(), self.header.clone());
        let (send, receive) = tokio::sync::oneshot::channel();
        // A thread of its own and not the runtime's: a runtime waits for its threads when it ends, and would wait for a
        // server that never answers although nobody wants the answer any more. This one ends with its timeouts.
        let thread = std::thread::Builder::new().name("model".to_owned()).spawn(move || {
            let _ = send.send(exchange(&agent, &url, header, &body));
        });
        if let Err(error) = thread {
            return Err(Failure::lasting(What::Transport(format!("no thread: {error}"))));
        }
        match receive.await {
            Ok(Ok(response)) => self.read(&response),
            Ok(Err(error)) => Err(Failure::of(&error)),
            Err(_) => Err(Failure::lasting(What::Transport("the request ended unexpectedly".to_owned()))),
        }
    }

    fn read(&self, response: &Response) -> Result<Turn, Failure> {
        let refused = |status: u16, message: String| Failure {
            what: What::Status(status, message),
            may_pass: matches!(status, 408 | 429 | 500..=599),
            pause: response.retry_after.as_deref().and_then(retry_after),
        };
        match response.status {
            200..=299 => {}
            300..=399 => {
                let to = response.location.clone().unwrap_or_else(|| "nowhere".to_owned());
                return Err(Failure::lasting(What::Redirect(to)));
            }
            status => {
                let said = serde_json::from_slice(&response.body).ok().as_ref().and_then(chat::refusal);
                let message = match said {
                    Some(NoAnswer::Refused { message, .. }) => message,
                    Some(NoAnswer::Nonsense(_) | NoAnswer::Unfinished(_)) | None => {
                        chat::start_of(&response.body)
                    }
                };
                return Err(refused(status, message));
            }
        }
        match chat::answer(&response.body) {
            Ok(turn) => Ok(self.without_key(turn)),
            Err(NoAnswer::Refused { status, message }) => {
                Err(refused(status.unwrap_or(response.status), message))
            }
            Err(NoAnswer::Nonsense(what)) => Err(Failure::lasting(What::Nonsense(what))),
            Err(NoAnswer::Unfinished(what)) => Err(Failure::passing(What::Unfinished(what))),
        }
    }

    /// A server that says the key back does not bring it into a trace.
    fn without_key(&self, mut turn: Turn) -> Turn {
        let clean = |text: &mut String| {
            if text.contains(&self.key) {
                *text = text.replace(&self.key, "[redacted: key]");
            }
        };
        clean(&mut turn.text);
        for call in &mut turn.calls {
            clean(&mut call.id);
            clean(&mut call.name);
            clean(&mut call.arguments);
        }
        turn
    }

    fn error(&self, what: What, attempts: u32, waited: Duration) -> ProviderError {
        let url = self.url.clone();
        // What others wrote: without the key, without control characters, and not a whole page.
        let shown = |text: String| {
            let text: String = text.replace(&self.key, "[redacted: key]").chars().take(600).collect();
            printable(&text)
        };
        match what {
            What::Transport(what) => ProviderError::Transport { url, what: shown(what), attempts },
            What::Timeout(what) => ProviderError::Timeout {
                url,
                what,
                attempts,
                waited: Duration::from_millis(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)),
            },
            What::Status(status, message) => {
                ProviderError::Status { url, status, message: shown(message), attempts }
            }
            What::Redirect(to) => ProviderError::Redirect { url, to: shown(to) },
            What::TooLarge => ProviderError::TooLarge { url, limit: LARGEST_ANSWER },
            What::Nonsense(what) => ProviderError::Nonsense { url, what: shown(what), attempts },
            What::Unfinished(what) => ProviderError::Unfinished { what: shown(what), attempts },
        }
    }
}

impl Provider for OpenRouter {
    fn next<'a>(&'a self, conversation: &'a [Message], tools: &'a [OfferedTool]) -> ProviderFuture<'a> {
        Box::pin(self.ask(chat::question(&self.model, conversation, tools)))
    }
}

/// What came back.
struct Response {
    status: u16,
    retry_after: Option<String>,
    location: Option<String>,
    body: Vec<u8>,
}

/// One attempt that failed.
struct Failure {
    what: What,
    /// Whether another attempt may succeed.
    may_pass: bool,
    /// The pause that the server asks for.
    pause: Option<Duration>,
}

enum What {
    Transport(String),
    Timeout(String),
    Status(u16, String),
    Redirect(String),
    TooLarge,
    Nonsense(String),
    Unfinished(String),
}

impl Failure {
    const fn lasting(what: What) -> Self {
        Self { what, may_pass: false, pause: None }
    }

    const fn passing(what: What) -> Self {
        Self { what, may_pass: true, pause: None }
    }

    fn of(error: &ureq::Error) -> Self {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "an error that is not known yet does not pass by itself"
        )]
        match error {
            ureq::Error::Timeout(timeout) => Self::passing(What::Timeout(timeout.to_string())),
            ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::ConnectProxyFailed(_) => {
                Self::passing(What::Transport(error.to_string()))
            }
            ureq::Error::BodyExceedsLimit(_) => Self::lasting(What::TooLarge),
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
                Self::lasting(What::Nonsense(error.to_string()))
            }
            _ => Self::lasting(What::Transport(error.to_string())),
        }
    }
}

/// One request and its response, on this thread.
fn exchange(
    agent: &ureq::Agent,
    url: &str,
    authorization: HeaderValue,
    body: &[u8],
) -> Result<Response, ureq::Error> {
    let response = agent
        .post(url)
        .header(header::AUTHORIZATION, authorization)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .send(body)?;
    let named = |name: header::HeaderName| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
    };
    let (retry_after, location) = (named(header::RETRY_AFTER), named(header::LOCATION));
    let status = response.status().as_u16();
    let body = response.into_body().into_with_config().limit(LARGEST_ANSWER).read_to_vec()?;
    Ok(Response { status, retry_after, location, body })
}

/// The pause of a `Retry-After`: seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    static DATES: jiff::fmt::rfc2822::DateTimeParser = jiff::fmt::rfc2822::DateTimeParser::new();
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DATES.parse_timestamp(text).ok()?;
    let pause = at.duration_since(jiff::Timestamp::now());
    // A date that is past asks for no pause.
    Some(Duration::try_from(pause).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        OpenRouter::new("k").unwrap().with_base_url(url).unwrap_err().to_string()
    }

    // contract: P14
    #[test]
    fn addresses_and_keys_that_cannot_be_used_are_named() {
        for (url, named) in [
            ("", "is no address"),
            ("openrouter.ai/api", "is no address"),
            ("ftp://host/x", "is no address"),
            ("https://user:secret-1@host/v1", "a password"),
            ("https://host/v1?key=secret-1", "a query"),
        ] {
            let error = refused(url);
            assert!(error.contains("OPENROUTER_BASE_URL") && error.contains(named), "{url}: {error}");
            assert!(!error.contains("secret-1"), "{error}");
        }
        assert_eq!(OpenRouter::new(" ").unwrap_err(), ProviderError::NoKey);
        let error = OpenRouter::new("secret-1\nx").unwrap_err().to_string();
        assert!(error.contains("OPENROUTER_API_KEY") && !error.contains("secret-1"), "{error}");
        let model = OpenRouter::new("k").unwrap().with_base_url("http://[::1]:80/v1//").unwrap();
        assert_eq!((model.base_url(), model.local), ("http://[::1]:80/v1", true));
        assert!(!OpenRouter::new("k").unwrap().local);
    }

    // contract: P14
    #[test]
    fn pauses_double_and_what_the_server_asks_for_is_read() {
        let model = OpenRouter::new("k").unwrap().with_attempts(9, Duration::from_millis(1024));
        for (attempts, least) in [(1, 1024), (2, 2048), (5, 16384)] {
            let pause = model.pause_after(attempts).as_millis();
            assert!(pause >= least && pause <= least + least / 4, "{attempts}: {pause}");
        }
        assert_eq!(model.pause(None, u32::MAX), LONGEST_PAUSE);
        assert_eq!(model.pause(Some(Duration::from_secs(2)), 1), Duration::from_secs(2));
        assert_eq!(model.pause(Some(Duration::from_hours(1)), 1), LONGEST_PAUSE);
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(90);
        let date = soon.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        assert!(retry_after(&date).is_some_and(|pause| pause > Duration::from_secs(80)), "{date}");
        assert_eq!(retry_after("soon"), None);
        assert_eq!(retry_after("-3"), None);
    }
}

//! The one door of [`crate::Network::Domains`]: an HTTP proxy that judges host name and resolved address.
//!
//! The command keeps a network of its own in which there is nothing but loopback. One listening socket is opened
//! inside that network and handed to the proxy, which runs outside: see `listen_inside`. So nothing has to be started
//! in the sandbox, no unix socket has to be reachable from it, and a command that ignores the proxy reaches nothing.
//!
//! What the proxy promises:
//!
//! - A name that the rules do not allow is not even resolved.
//! - The address that was checked is the address that is connected to; a name is resolved once per request.
//! - Addresses that are not public, and this machine's own, are refused unless [`DomainRules::allow`] holds them.
//! - One request per connection; a head that two readers could understand differently is refused.
//! - Every decision is recorded.
//!
//! What it cannot promise: inside a `CONNECT` tunnel the bytes are the command's and, as a rule, encrypted. A command
//! that may reach `cdn.example` may reach whatever else that address serves (domain fronting).

mod http;
#[cfg(target_os = "linux")]
mod namespace;
mod rules;

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use self::http::{MAX_HEAD, Malformed, Request, Target};
use self::rules::{Compiled, Host, Refusal};

#[cfg(target_os = "linux")]
pub use self::namespace::listen_inside;
pub use self::rules::{DomainRules, RuleError};

/// The port on which a command finds the proxy. Its network is its own, so this collides with nothing outside.
pub const PORT: u16 = 3128;

/// How many connections are open at a time; more are answered with 503.
pub const MAX_CONNECTIONS: usize = 128;

/// How many decisions are remembered. Later ones displace the oldest, which are counted.
pub const MAX_DECISIONS: usize = 4096;

const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One connection that was asked for through the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkDecision {
    /// The host as the client named it, in lower case; empty when the request could not be read.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address it resolved to, when it got that far.
    pub address: Option<IpAddr>,
    /// Whether the rules let it through. The connection may have failed all the same: see `reason`.
    pub allowed: bool,
    /// The rule that decided: `allow:ENTRY`, `deny:ENTRY`, `default`, `port`, `address`, `malformed`.
    pub rule: String,
    /// One sentence for people.
    pub reason: String,
    /// When it was decided.
    pub time: SystemTime,
}

/// Turns a host name into addresses.
pub trait Resolve: Send + Sync {
    /// All addresses of `host`, best first.
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;
}

/// Asks the system, as every other program does (`getaddrinfo`).
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A proxy that is not running yet.
pub struct Proxy {
    rules: Compiled,
    resolver: Arc<dyn Resolve>,
    observer: Option<Observer>,
}

type Observer = Arc<dyn Fn(&NetworkDecision) + Send + Sync>;

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Proxy").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy with these rules and the system's resolver.
    ///
    /// # Errors
    /// An entry of the rules means nothing.
    pub fn new(rules: &DomainRules) -> Result<Self, RuleError> {
        Ok(Self { rules: Compiled::new(rules)?, resolver: Arc::new(SystemResolver), observer: None })
    }

    /// Resolves names in another way.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Is told of every decision at the moment it is made. Must not block.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&NetworkDecision) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Answers connections to `listener` until the result is dropped, which also cuts those that are open.
    ///
    /// # Errors
    /// There is no tokio runtime here, or the socket is not fit for it.
    pub fn serve(self, listener: std::net::TcpListener) -> io::Result<Serving> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let shared = Arc::new(Shared {
            rules: self.rules,
            resolver: self.resolver,
            observer: self.observer,
            records: Mutex::default(),
        });
        let task = runtime.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Serving { address, shared, task })
    }
}

/// A running proxy; dropping it ends it.
pub struct Serving {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The decisions so far, oldest first; at most [`MAX_DECISIONS`], the newest.
    pub fn decisions(&self) -> Vec<NetworkDecision> {
        self.shared.records().list.iter().cloned().collect()
    }

    /// How many older decisions are not among [`decisions`](Self::decisions) any more.
    pub fn forgotten_decisions(&self) -> u64 {
        self.shared.records().forgotten
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Serving").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The variables that make programs use a proxy at `address`. Loopback is left out: it is the command's own.
///
/// `NODE_USE_ENV_PROXY` makes Node.js (22.21, 24) read the others.
pub fn environment(address: SocketAddr) -> Vec<(&'static str, String)> {
    let url = format!("http://{address}");
    let local = "localhost,127.0.0.1,::1".to_owned();
    let mut variables: Vec<_> =
        ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
            .into_iter()
            .map(|name| (name, url.clone()))
            .collect();
    variables.push(("NO_PROXY", local.clone()));
    variables.push(("no_proxy", local));
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    variables
}

/// [`environment`] for a command in a network of its own.
pub fn inside_environment() -> Vec<(&'static str, String)> {
    environment((Ipv4Addr::LOCALHOST, PORT).into())
}

struct Shared {
    rules: Compiled,
    resolver: Arc<dyn Resolve>,
    observer: Option<Observer>,
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    list: VecDeque<NetworkDecision>,
    forgotten: u64,
}

impl Shared {
    fn records(&self) -> std::sync::MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, decision: NetworkDecision) {
        if let Some(observer) = &self.observer {
            observer(&decision);
        }
        let mut records = self.records();
        if records.list.len() >= MAX_DECISIONS {
            records.list.pop_front();
            records.forgotten += 1;
        }
        records.list.push_back(decision);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropped with this task, which ends every connection.
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of descriptors, or the peer has gone already: neither is a reason to stop or to spin.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            connections.spawn(async move {
                // A broken connection concerns its two ends, who see it themselves.
                let _ = connection(client, &shared).await;
                drop(slot);
            });
        } else {
            let busy = http::answer(503, "too many connections through the proxy", "limit");
            // A new socket has room for this much; should it not, the client sees a closed connection.
            let _ = client.try_write(&busy);
        }
    }
}

/// One connection from its request to its end.
async fn connection(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    let (head, early) = match timeout(HEAD_TIMEOUT, read_head(&mut client)).await {
        Ok(Ok(Some(parts))) => parts,
        Ok(Ok(None)) => return Ok(()),
        Ok(Err(too_long)) => return refuse_form(client, shared, too_long?).await,
        Err(_) => {
            let late = Malformed { status: 408, reason: "the request did not arrive in time".to_owned() };
            return refuse_form(client, shared, late).await;
        }
    };
    let request = match http::parse(&head) {
        Ok(request) => request,
        Err(malformed) => return refuse_form(client, shared, malformed).await,
    };

    let target = request.target();
    let mut decision = NetworkDecision {
        host: target.host.to_string(),
        port: target.port,
        address: None,
        allowed: false,
        rule: String::new(),
        reason: String::new(),
        time: SystemTime::now(),
    };
    let reached = reach(target, shared, &mut decision).await;
    shared.record(decision.clone());
    let upstream = match reached {
        Ok(upstream) => upstream,
        Err(status) => {
            let reason = format!("{}:{} {}", decision.host, decision.port, decision.reason);
            return answer(client, &http::answer(status, &reason, &decision.rule)).await;
        }
    };
    match request {
        Request::Tunnel(_) => tunnel(client, upstream, &early).await,
        Request::Forward { head, body, .. } => forward(client, upstream, &head, &early, body).await,
    }
}

/// Judges a target and connects to it; fills in the decision. An error is the status to answer with.
async fn reach(target: &Target, shared: &Shared, decision: &mut NetworkDecision) -> Result<TcpStream, u16> {
    let refuse = |decision: &mut NetworkDecision, refusal: Refusal| {
        decision.allowed = false;
        decision.rule = refusal.rule;
        decision.reason = format!("refused: {}", refusal.reason);
        403
    };
    decision.rule = match shared.rules.judge_host(&target.host, target.port) {
        Ok(rule) => rule,
        Err(refusal) => return Err(refuse(decision, refusal)),
    };
    let addresses = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => match timeout(RESOLVE_TIMEOUT, shared.resolver.resolve(name)).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => {
                decision.allowed = true;
                decision.reason = format!("allowed, but the name could not be resolved: {error}");
                return Err(502);
            }
            Err(_) => {
                decision.allowed = true;
                decision.reason = String::from("allowed, but the name was not resolved in time");
                return Err(504);
            }
        },
    };

    let mut refused = None;
    let mut failure = None;
    for address in addresses {
        decision.address = Some(address);
        if let Err(refusal) = shared.rules.judge_address(address) {
            refused = Some((address, refusal));
            continue;
        }
        match timeout(CONNECT_TIMEOUT, TcpStream::connect((address, target.port))).await {
            Ok(Ok(stream)) => {
                // A connection to any address of this machine has that address at both ends, public or not.
                let own = stream.local_addr().is_ok_and(|local| local.ip() == address);
                if own && !shared.rules.names_address(address) {
                    let refusal = Refusal {
                        rule: "address".to_owned(),
                        reason: format!("{address} is this machine itself; allow it by number to reach it"),
                    };
                    refused = Some((address, refusal));
                    continue;
                }
                decision.allowed = true;
                decision.reason = String::from("allowed");
                return Ok(stream);
            }
            Ok(Err(error)) => failure = Some((address, 502, error.to_string())),
            Err(_) => failure = Some((address, 504, "no answer in time".to_owned())),
        }
    }
    if let Some((address, status, reason)) = failure {
        decision.address = Some(address);
        decision.allowed = true;
        decision.reason = format!("allowed, but connecting to {address} failed: {reason}");
        return Err(status);
    }
    if let Some((address, refusal)) = refused {
        decision.address = Some(address);
        return Err(refuse(decision, refusal));
    }
    decision.allowed = true;
    decision.reason = String::from("allowed, but the name has no address");
    Err(502)
}

type Head = (Vec<u8>, Vec<u8>);

/// Reads up to the empty line; gives the head and what came after it. `None` is a client that said nothing.
async fn read_head(client: &mut TcpStream) -> Result<Option<Head>, io::Result<Malformed>> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        let seen = bytes.len();
        match client.read_buf(&mut bytes).await {
            Ok(0) if seen == 0 => return Ok(None),
            Ok(0) => return Err(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(Err(error)),
        }
        // Only what is new can hold the end, save for three bytes of it.
        let from = seen.saturating_sub(3);
        let fresh = bytes.get(from..).unwrap_or_default();
        if let Some(at) = memchr::memmem::find(fresh, b"\r\n\r\n") {
            let early = bytes.split_off(from + at + 4);
            if bytes.len() <= MAX_HEAD {
                return Ok(Some((bytes, early)));
            }
        }
        if bytes.len() > MAX_HEAD {
            return Err(Ok(Malformed {
                status: 431,
                reason: format!("the head of the request is longer than {MAX_HEAD} bytes"),
            }));
        }
    }
}

async fn refuse_form(client: TcpStream, shared: &Shared, malformed: Malformed) -> io::Result<()> {
    shared.record(NetworkDecision {
        host: String::new(),
        port: 0,
        address: None,
        allowed: false,
        rule: "malformed".to_owned(),
        reason: format!("refused: {}", malformed.reason),
        time: SystemTime::now(),
    });
    answer(client, &http::answer(malformed.status, &malformed.reason, "malformed")).await
}

/// Sends a last answer.
async fn answer(mut client: TcpStream, bytes: &[u8]) -> io::Result<()> {
    client.write_all(bytes).await?;
    client.shutdown().await?;
    linger(client).await;
    Ok(())
}

/// Reads for a moment what the client still sends: closing a socket with unread bytes in it resets the connection and
/// can take the answer with it.
async fn linger(client: TcpStream) {
    let mut rest = client.take(1024 * 1024);
    let _ = timeout(Duration::from_secs(1), tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

async fn tunnel(mut client: TcpStream, mut upstream: TcpStream, early: &[u8]) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    upstream.write_all(early).await?;
    tokio::io::copy_bidirectional(&mut client, &mut upstream).await?;
    Ok(())
}

/// Passes one request on and its answer back. Of what the client sends, exactly the announced body is passed on.
async fn forward(
    mut client: TcpStream,
    mut upstream: TcpStream,
    head: &[u8],
    early: &[u8],
    body: u64,
) -> io::Result<()> {
    let result = {
        let (from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = upstream.split();
        let mut sending = early.chain(from_client).take(body);
        let send = async {
            to_server.write_all(head).await?;
            tokio::io::copy(&mut sending, &mut to_server).await
        };
        let receive = async {
            let copied = tokio::io::copy(&mut from_server, &mut to_client).await;
            to_client.shutdown().await?;
            copied
        };
        tokio::pin!(send, receive);
        // A server may answer before it has read the whole body, or refuse the rest of it: its answer decides.
        tokio::select! {
            _ = &mut send => receive.await,
            received = &mut receive => received,
        }
    };
    linger(client).await;
    result.map(drop)
}

//! The proxy: what it lets through, what it refuses, and that it says so. No outside network is used.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cmdgate_executor::DomainRules;
use cmdgate_executor::proxy::{MAX_CONNECTIONS, NetworkDecision, Proxy, Resolve, Serving, environment};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Names and their addresses, one list per question asked.
#[derive(Default)]
struct Names {
    known: HashMap<&'static str, Vec<Vec<&'static str>>>,
    asked: Arc<AtomicUsize>,
}

impl Names {
    fn with(mut self, name: &'static str, addresses: &[&'static str]) -> Self {
        self.known.entry(name).or_default().push(addresses.to_vec());
        self
    }
}

impl Resolve for Names {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.known.get(host).map(|answers| {
            let addresses = answers.get(turn).unwrap_or_else(|| answers.last().unwrap());
            addresses.iter().map(|address| address.parse().unwrap()).collect()
        });
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no such name")) })
    }
}

/// A server that keeps what each connection sent and gives one fixed answer to each.
async fn origin(answer: &'static str) -> (u16, Arc<std::sync::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let slot = {
                    let mut log = log.lock().unwrap();
                    log.push(String::new());
                    log.len() - 1
                };
                let mut buffer = [0; 4096];
                let mut answered = false;
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    let done = {
                        let mut log = log.lock().unwrap();
                        log[slot] += &String::from_utf8_lossy(&buffer[..count]);
                        log[slot].contains("END")
                            || (log[slot].contains("\r\n\r\n") && !log[slot].contains("Content-Length"))
                    };
                    if done && !answered {
                        answered = true;
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        // Whatever a proxy passes on after the request would be seen before this ends.
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        stream.shutdown().await.unwrap();
                    }
                }
            });
        }
    });
    (port, seen)
}

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello";

fn rules(allow: &[&str], port: u16) -> DomainRules {
    DomainRules { ports: vec![port], ..DomainRules::allowing(allow.iter().copied()) }
}

fn serve(rules: &DomainRules, names: Names) -> Serving {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Proxy::new(rules).unwrap().resolver(names).serve(listener).unwrap()
}

/// Sends one request and reads the answer to its end.
async fn ask(proxy: &Serving, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn only(proxy: &Serving) -> NetworkDecision {
    let decisions = proxy.decisions();
    assert_eq!(decisions.len(), 1, "{decisions:?}");
    decisions.into_iter().next().unwrap()
}

#[tokio::test]
async fn a_plain_request_is_rewritten_and_answered() {
    let (port, seen) = origin(OK).await;
    let proxy =
        serve(&rules(&["good.test", "127.0.0.1"], port), Names::default().with("good.test", &["127.0.0.1"]));
    let request = format!(
        "GET http://Good.Test.:{port}/a?b=c HTTP/1.1\r\nHost: good.test:{port}\r\nProxy-Connection: keep-alive\r\n\
         Connection: keep-alive, X-Hop\r\nX-Hop: secret\r\nProxy-Authorization: Basic x\r\nAccept: */*\r\n\r\n"
    );
    let answer = ask(&proxy, &request).await;
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(
        seen.lock().unwrap().concat(),
        format!("GET /a?b=c HTTP/1.1\r\nHost: good.test:{port}\r\nAccept: */*\r\nConnection: close\r\n\r\n")
    );
    let decision = only(&proxy);
    assert_eq!(
        (decision.host.as_str(), decision.port, decision.address, decision.allowed, decision.rule.as_str()),
        ("good.test", port, Some([127, 0, 0, 1].into()), true, "allow:good.test")
    );
}

#[tokio::test]
async fn exactly_the_announced_body_is_passed_on() {
    let (port, seen) = origin(OK).await;
    let proxy =
        serve(&rules(&["good.test", "127.0.0.1"], port), Names::default().with("good.test", &["127.0.0.1"]));
    // After the body a second request is smuggled for another host on the same server.
    let request = format!(
        "POST http://good.test:{port}/ HTTP/1.1\r\nContent-Length: 6\r\n\r\nabcENDGET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    );
    let answer = ask(&proxy, &request).await;
    assert!(answer.ends_with("hello"), "{answer}");
    let seen = seen.lock().unwrap().concat();
    assert!(seen.ends_with("\r\n\r\nabcEND"), "{seen}");
    assert!(!seen.contains("evil"), "{seen}");
}

#[tokio::test]
async fn a_tunnel_passes_bytes_both_ways() {
    let (port, seen) = origin("pong").await;
    let proxy = serve(
        &rules(&["*.good.test", "127.0.0.0/8"], port),
        Names::default().with("a.good.test", &["127.0.0.1"]),
    );
    // The first bytes of the tunnel come in the same packet as its head.
    let answer =
        ask(&proxy, &format!("CONNECT a.good.test:{port} HTTP/1.1\r\nHost: a.good.test\r\n\r\n\0ping END"))
            .await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\npong");
    assert_eq!(seen.lock().unwrap().concat(), "\0ping END");
    assert_eq!(only(&proxy).rule, "allow:*.good.test");
}

#[tokio::test]
async fn what_no_rule_allows_is_refused_without_asking_a_name_server() {
    let names = Names::default().with("evil.test", &["93.184.216.34"]);
    let asked = Arc::clone(&names.asked);
    let proxy = serve(
        &DomainRules::allowing(["good.test", "*.good.test", "*.example.org"]).denying(["bad.good.test"]),
        names,
    );
    for (request, rule) in [
        ("CONNECT evil.test:443 HTTP/1.1\r\n\r\n", "default"),
        ("CONNECT example.org:443 HTTP/1.1\r\n\r\n", "default"),
        ("CONNECT notgood.test:443 HTTP/1.1\r\n\r\n", "default"),
        ("CONNECT good.test.evil.test:443 HTTP/1.1\r\n\r\n", "default"),
        ("CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n", "default"),
        ("CONNECT bad.good.test:443 HTTP/1.1\r\n\r\n", "deny:bad.good.test"),
        ("CONNECT BAD.Good.Test.:443 HTTP/1.1\r\n\r\n", "deny:bad.good.test"),
        ("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", "default"),
        ("CONNECT good.test:22 HTTP/1.1\r\n\r\n", "port"),
        ("GET http://good.test:8080/ HTTP/1.1\r\n\r\n", "port"),
    ] {
        let answer = ask(&proxy, request).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{request}: {answer}");
        assert!(answer.contains(&format!("Cmdgate-Rule: {rule}\r\n")), "{request}: {answer}");
        let last = proxy.decisions().pop().unwrap();
        assert!(!last.allowed);
        assert_eq!(last.rule, rule);
    }
    assert_eq!(proxy.decisions().len(), 10);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_refusal_reads_well() {
    let proxy = serve(&DomainRules::allowing(["crates.io"]), Names::default());
    insta::assert_snapshot!(ask(&proxy, "CONNECT evil.test:443 HTTP/1.1\r\n\r\n").await, @r"
    HTTP/1.1 403 evil.test:443 refused: no network rule allows evil.test
    Content-Type: text/plain
    Content-Length: 65
    Cmdgate-Rule: default
    Connection: close

    cmdgate: evil.test:443 refused: no network rule allows evil.test
    ");
}

#[tokio::test]
async fn names_that_lead_to_addresses_that_are_not_public_are_refused() {
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "10.1.2.3",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.9",
        "224.0.0.251",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:93.184.216.34",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        let proxy = serve(&DomainRules::allowing(["*"]), Names::default().with("rebind.test", &[address]));
        let answer = ask(&proxy, "GET http://rebind.test/latest/meta-data HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
        let decision = only(&proxy);
        assert_eq!((decision.allowed, decision.rule.as_str()), (false, "address"), "{address}");
        assert_eq!(decision.address, Some(address.parse().unwrap()));

        // The same address as a number in the request.
        let parsed: IpAddr = address.parse().unwrap();
        let literal = if parsed.is_ipv6() { format!("[{address}]") } else { address.to_owned() };
        let answer = ask(&proxy, &format!("CONNECT {literal}:443 HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
    }
}

#[tokio::test]
async fn odd_spellings_of_loopback_are_no_hosts_at_all() {
    let names = Names::default();
    let asked = Arc::clone(&names.asked);
    let proxy = serve(&DomainRules::allowing(["*", "127.0.0.1"]), names);
    for host in [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "127.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "a.0x7f",
        "1.2.3.4.5",
        "[::1%25lo]",
    ] {
        let answer = ask(&proxy, &format!("CONNECT {host}:80 HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{host}: {answer}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_denied_address_refuses_the_names_that_lead_to_it() {
    let (port, _) = origin(OK).await;
    let rules = rules(&["*", "127.0.0.0/8"], port).denying(["127.0.0.1/32"]);
    let proxy = serve(&rules, Names::default().with("a.test", &["127.0.0.1"]));
    let answer = ask(&proxy, &format!("CONNECT a.test:{port} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(only(&proxy).rule, "deny:127.0.0.1/32");
}

#[tokio::test]
async fn the_checked_address_is_used_and_nothing_is_resolved_twice() {
    let (port, seen) = origin(OK).await;
    // A rebinding name server: harmless at first, another address at the second question.
    let names = Names::default().with("a.test", &["127.0.0.1"]).with("a.test", &["127.0.0.2"]);
    let asked = Arc::clone(&names.asked);
    let proxy = serve(&rules(&["a.test", "127.0.0.1"], port), names);
    assert!(ask(&proxy, &format!("GET http://a.test:{port}/ HTTP/1.1\r\n\r\n")).await.ends_with("hello"));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(seen.lock().unwrap().len(), 1);
    // The second answer is judged afresh.
    let answer = ask(&proxy, &format!("GET http://a.test:{port}/ HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[tokio::test]
async fn bad_addresses_in_a_list_are_passed_over() {
    let (port, _) = origin(OK).await;
    let names = Names::default().with("a.test", &["169.254.169.254", "::1", "127.0.0.1"]);
    let proxy = serve(&rules(&["a.test", "127.0.0.1"], port), names);
    assert!(ask(&proxy, &format!("GET http://a.test:{port}/ HTTP/1.1\r\n\r\n")).await.ends_with("hello"));
    assert_eq!(only(&proxy).address, Some([127, 0, 0, 1].into()));
}

#[tokio::test]
async fn failures_behind_an_allowed_name_are_told_from_refusals() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap().port();
    drop(listener);
    let names = Names::default().with("down.test", &["127.0.0.1"]).with("empty.test", &[]);
    let proxy = serve(&rules(&["*", "127.0.0.1"], closed), names);
    for host in ["down.test", "empty.test", "nowhere.test"] {
        let answer = ask(&proxy, &format!("CONNECT {host}:{closed} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{host}: {answer}");
        let decision = proxy.decisions().pop().unwrap();
        assert!(decision.allowed && decision.rule == "allow:*", "{decision:?}");
    }
}

#[tokio::test]
async fn requests_that_could_be_read_in_two_ways_are_refused() {
    let (port, seen) = origin(OK).await;
    let proxy = serve(&rules(&["*", "127.0.0.1"], port), Names::default().with("a.test", &["127.0.0.1"]));
    let url = format!("http://a.test:{port}/");
    let long = "x".repeat(70 * 1024);
    for (status, request) in [
        (400, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned()),
        (400, format!("GET {url} HTTP/1.1\r\nHost: other.test\r\n\r\n")),
        (400, format!("GET {url} HTTP/1.1\r\nHost: a.test\r\n\r\n")),
        (400, format!("GET {url} HTTP/1.1\r\nHost: a.test:{port}\r\nhost: a.test:{port}\r\n\r\n")),
        (400, format!("CONNECT a.test:{port} HTTP/1.1\r\nHost: b.test:{port}\r\n\r\n")),
        (400, format!("POST {url} HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy")),
        (400, format!("POST {url} HTTP/1.1\r\nContent-Length: +1\r\n\r\nx")),
        (400, format!("POST {url} HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx")),
        (400, format!("POST {url} HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nx")),
        (411, format!("POST {url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
        (
            411,
            format!(
                "POST {url} HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
        ),
        (400, format!("GET {url} HTTP/1.1\r\nX: 1\n\nGET http://b.test/ HTTP/1.1\r\n\r\n")),
        (400, format!("GET {url} HTTP/1.1\r\nX : 1\r\n\r\n")),
        (400, format!("GET {url} HTTP/1.1\r\nX: 1\r\n folded\r\n\r\n")),
        (400, format!("GET {url} HTTP/1.1\r\nX: a\0b\r\n\r\n")),
        (400, format!("GET {url}#x HTTP/1.1\r\n\r\n")),
        (400, format!("GET http://user@a.test:{port}/ HTTP/1.1\r\n\r\n")),
        (400, format!("GET http://a.test\\@b.test:{port}/ HTTP/1.1\r\n\r\n")),
        (400, format!("GET http://a.test:{port}:80/ HTTP/1.1\r\n\r\n")),
        (400, "GET http://a.test:99999/ HTTP/1.1\r\n\r\n".to_owned()),
        (400, "GET http://a.test:/ HTTP/1.1\r\n\r\n".to_owned()),
        (400, "GET http:///path HTTP/1.1\r\n\r\n".to_owned()),
        (400, "GET https://a.test/ HTTP/1.1\r\n\r\n".to_owned()),
        (400, "GET ftp://a.test/ HTTP/1.1\r\n\r\n".to_owned()),
        (400, "CONNECT a.test HTTP/1.1\r\n\r\n".to_owned()),
        (400, "CONNECT http://a.test:443 HTTP/1.1\r\n\r\n".to_owned()),
        (400, "CONNECT a.test/x:443 HTTP/1.1\r\n\r\n".to_owned()),
        (400, "CONNECT bücher.test:443 HTTP/1.1\r\n\r\n".to_owned()),
        (400, "CONNECT a%2etest:443 HTTP/1.1\r\n\r\n".to_owned()),
        (400, "\x16\x03\x01 not http at all\r\n\r\n".to_owned()),
        (431, format!("GET {url} HTTP/1.1\r\nX: {long}\r\n\r\n")),
        (431, format!("GET {url} HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(200))),
    ] {
        let answer = ask(&proxy, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.200}: {answer}");
        let decision = proxy.decisions().pop().unwrap();
        assert_eq!((decision.allowed, decision.rule.as_str()), (false, "malformed"));
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_cannot_be_split_by_what_was_asked() {
    let proxy = serve(&DomainRules::default(), Names::default());
    let answer = ask(&proxy, "CONNECT a.test\r:443 HTTP/1.1\r\nX: \u{e9}\r\n\r\n").await;
    assert_eq!(answer.matches("\r\n\r\n").count(), 1, "{answer}");
    assert!(answer.is_ascii());
}

#[tokio::test]
async fn more_connections_than_allowed_are_told_so() {
    let proxy = serve(&DomainRules::default(), Names::default());
    let mut idle = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        idle.push(TcpStream::connect(proxy.address()).await.unwrap());
    }
    let answer = ask(&proxy, "").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(idle);
    for _ in 0..200 {
        if ask(&proxy, "CONNECT a.test:443 HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 403 ") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("closed connections do not free their places");
}

#[tokio::test]
async fn dropping_the_proxy_cuts_its_connections() {
    let (port, _) = origin(OK).await;
    let proxy = serve(&rules(&["127.0.0.1"], port), Names::default());
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    stream.write_all(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let mut buffer = [0; 256];
    assert!(stream.read(&mut buffer).await.unwrap() > 0);
    let address = proxy.address();
    drop(proxy);
    assert!(matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)));
    for _ in 0..100 {
        if TcpStream::connect(address).await.is_err() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it still listens");
}

#[tokio::test]
async fn an_observer_sees_each_decision() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::new(&DomainRules::default())
        .unwrap()
        .observer(move |decision| sender.send(decision.clone()).unwrap())
        .serve(listener)
        .unwrap();
    ask(&proxy, "CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), proxy.decisions());
}

#[test]
fn entries_that_mean_nothing_are_refused_by_name() {
    for entry in [
        "",
        "*.",
        "*x.test",
        "a.*.test",
        "http://a.test",
        "a.test:443",
        "a.test/",
        "a b",
        "10.0.0.0/33",
        "10.0.0.0/",
        "::1/129",
        "[::1]",
        "*.10.0.0.1",
        "a..b",
        ".a.test",
        "10.0.0.0/+8",
    ] {
        let error = DomainRules::allowing([entry]).check().unwrap_err();
        assert_eq!(error.entry, entry);
        assert!(Proxy::new(&DomainRules::default().denying([entry])).is_err());
    }
    for entry in [
        "*",
        "a.test",
        "A.Test.",
        "*.a.test",
        "xn--bcher-kva.example",
        "10.0.0.0/8",
        "::1",
        "fd00::/8",
        "0.0.0.0/0",
        "localhost",
    ] {
        assert_eq!(DomainRules::allowing([entry]).check(), Ok(()), "{entry}");
    }
}

#[test]
fn every_common_variable_is_set_in_both_cases() {
    let variables = environment("127.0.0.1:3128".parse().unwrap());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        for name in [name.to_owned(), name.to_lowercase()] {
            assert!(variables.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}

/// Everything together: a real sandbox without a network, the proxy's socket opened inside it, and `curl` in there.
#[cfg(target_os = "linux")]
mod inside {
    use std::io::{BufRead as _, BufReader};
    use std::os::fd::{AsFd as _, AsRawFd as _};
    use std::process::{Child, Command, Stdio};

    use cmdgate_executor::proxy::{PORT, inside_environment, listen_inside};

    use super::*;

    /// Starts `command` in a sandbox that waits; gives its namespace's process and the pipe that lets it go.
    fn start(command: &str, extra: &[&str]) -> (Child, u32, io::PipeWriter) {
        let (status, status_out) = io::pipe().unwrap();
        let (gate, release) = io::pipe().unwrap();
        for descriptor in [status_out.as_fd(), gate.as_fd()] {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty()).unwrap();
        }
        let child = Command::new("bwrap")
            .args([
                "--unshare-user",
                "--unshare-pid",
                "--unshare-net",
                "--cap-drop",
                "ALL",
                "--ro-bind",
                "/",
                "/",
            ])
            .args(["--dev", "/dev", "--proc", "/proc", "--die-with-parent", "--json-status-fd"])
            .arg(status_out.as_raw_fd().to_string())
            .arg("--block-fd")
            .arg(gate.as_raw_fd().to_string())
            .args(extra)
            .args(["--", "bash", "-c", command])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(inside_environment())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("bubblewrap is installed");
        drop(status_out);
        let mut line = String::new();
        BufReader::new(status).read_line(&mut line).unwrap();
        let status: serde_json::Value = serde_json::from_str(&line).unwrap();
        let pid = u32::try_from(status["child-pid"].as_u64().unwrap()).unwrap();
        (child, pid, release)
    }

    async fn run(
        command: &str,
        extra: &[&str],
        rules: &DomainRules,
        names: Names,
    ) -> (String, Vec<NetworkDecision>) {
        let (child, pid, release) = start(command, extra);
        let listener = listen_inside(pid, PORT).unwrap();
        let proxy = Proxy::new(rules).unwrap().resolver(names).serve(listener).unwrap();
        io::Write::write_all(&mut &release, b"g").unwrap();
        let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (text, proxy.decisions())
    }

    async fn check_all(extra: &[&str]) {
        let (port, seen) = origin(OK).await;
        let rules = rules(&["site.test", "127.0.0.1"], port);
        let names = Names::default().with("site.test", &["127.0.0.1"]);
        let command = format!(
            "exec 2>&1
             echo plain $(curl -sS -m 5 http://site.test:{port}/)
             echo tunnel $(curl -sS -m 5 -p http://site.test:{port}/)
             echo other $(curl -sS -m 5 http://other.test:{port}/)
             echo secure $(curl -sS -m 5 https://other.test:{port}/ 2>&1)
             echo direct $(curl -sS -m 5 --noproxy '*' http://127.0.0.1:{port}/ >/dev/null 2>&1 || echo cut off)
             python3 -m http.server --bind 127.0.0.1 --directory /usr 8000 >/dev/null 2>&1 &
             for i in {{1..100}}; do (: >/dev/tcp/127.0.0.1/8000) 2>/dev/null && break; sleep 0.05; done
             echo own $(curl -sS -m 5 -o /dev/null -w '%{{http_code}}' http://127.0.0.1:8000/)
             kill %1"
        );
        let (text, decisions) = run(&command, extra, &rules, names).await;
        let expected = format!(
            "plain hello\ntunnel hello\n\
             other cmdgate: other.test:{port} refused: no network rule allows other.test\n\
             secure curl: (56) CONNECT tunnel failed, response 403\n\
             direct cut off\nown 200\n"
        );
        // Older versions of curl word the fourth line in another way.
        let text = text.replace(
            "Received HTTP code 403 from proxy after CONNECT",
            "CONNECT tunnel failed, response 403",
        );
        assert_eq!(text, expected);
        assert_eq!(seen.lock().unwrap().len(), 2);
        let decided: Vec<_> =
            decisions.iter().map(|decision| (decision.host.as_str(), decision.allowed)).collect();
        assert_eq!(
            decided,
            [("site.test", true), ("site.test", true), ("other.test", false), ("other.test", false)]
        );
    }

    #[tokio::test]
    async fn a_closed_network_with_one_door() {
        check_all(&[]).await;
    }

    /// `--disable-userns` moves the command into a second user namespace, which does not own the network.
    #[tokio::test]
    async fn a_closed_network_with_one_door_and_no_more_namespaces() {
        check_all(&["--disable-userns"]).await;
    }

    /// The same without any privilege. Root starts this test again as somebody else.
    #[tokio::test]
    async fn a_closed_network_with_one_door_for_an_ordinary_user() {
        if !rustix::process::geteuid().is_root() {
            check_all(&["--disable-userns"]).await;
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("tests");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        let status = Command::new("setpriv")
            .args(["--reuid", "65533", "--regid", "65533", "--clear-groups", "--"])
            .arg(&program)
            .args(["--exact", "inside::a_closed_network_with_one_door_for_an_ordinary_user"])
            .current_dir("/")
            .env("HOME", "/nonexistent")
            .status()
            .unwrap();
        assert!(status.success());
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(listen_inside(child.id(), PORT).is_err());
    }
}

/// The whole way: a job that may reach some hosts.
#[cfg(target_os = "linux")]
mod jobs {
    use std::time::Duration;

    use cmdgate_executor::{Executor, NetworkEnforced, Outcome, Sandbox};

    use super::*;

    #[tokio::test]
    async fn a_job_reaches_what_its_rules_allow_and_nothing_else() {
        let (port, seen) = origin(OK).await;
        let project = tempfile::tempdir().unwrap();
        let network = cmdgate_executor::Network::Domains(rules(&["localhost", "127.0.0.1"], port));
        let executor = Executor::builder(project.path())
            .sandbox(Sandbox { network, ..Sandbox::read_only() })
            .build()
            .unwrap();
        // `localhost` would go past the proxy, to the command's own network, if `curl` were not told.
        let script = format!(
            "exec 2>&1
             echo through $(curl -sS -m 9 --noproxy '' http://localhost:{port}/)
             echo past $(curl -s -m 9 http://localhost:{port}/ || echo cut off)
             echo tcp $( (: >/dev/tcp/127.0.0.1/{port}) 2>/dev/null || echo cut off)
             echo denied $(curl -sS -m 9 http://example.com:{port}/)
             echo metadata $(curl -sS -m 9 http://169.254.169.254:{port}/)
             env | grep -ic '^[a-z_]*_proxy='"
        );
        let finished = executor.shell(script).timeout(Duration::from_secs(50)).run().await.unwrap();
        assert_eq!(finished.outcome, Outcome::Exited(0));
        assert_eq!(
            finished.stdout.head,
            format!(
                "through hello\npast cut off\ntcp cut off\n\
                 denied cmdgate: example.com:{port} refused: no network rule allows example.com\n\
                 metadata cmdgate: 169.254.169.254:{port} refused: no network rule allows 169.254.169.254\n9\n"
            )
        );
        assert_eq!(seen.lock().unwrap().len(), 1);
        assert_eq!(finished.enforced.network, NetworkEnforced::ProxyOnly);
        let decided: Vec<_> =
            finished.network.iter().map(|decision| (decision.host.as_str(), decision.allowed)).collect();
        assert_eq!(decided, [("localhost", true), ("example.com", false), ("169.254.169.254", false)]);
    }

    #[tokio::test]
    async fn rules_that_mean_nothing_refuse_the_run() {
        let project = tempfile::tempdir().unwrap();
        let network = cmdgate_executor::Network::Domains(DomainRules::allowing(["https://crates.io"]));
        let executor = Executor::builder(project.path())
            .sandbox(Sandbox { network, ..Sandbox::read_only() })
            .build()
            .unwrap();
        let error = executor.shell("touch ran").run().await.unwrap_err();
        assert!(error.to_string().contains("https://crates.io"), "{error}");
    }
}

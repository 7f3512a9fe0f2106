//! The head of a proxy request: read, checked, and written anew. Pure.
//!
//! A deliberately small part of HTTP/1.1 (RFC 9112): one request per connection, `CONNECT` or `http://` in absolute
//! form, bodies by `Content-Length` only. `httparse` finds the parts; what they may be is decided here. A full HTTP
//! library would accept more than is wanted (chunked bodies, reuse of connections, several spellings of framing), and
//! each of these is a way to slip a second request past the check of the first.

use super::rules::Host;

/// The longest head of a request, in bytes.
pub(super) const MAX_HEAD: usize = 64 * 1024;

const MAX_HEADERS: usize = 128;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Target {
    /// Reads `host`, `host:port` or `[v6]:port`.
    fn parse(authority: &str, default_port: Option<u16>) -> Result<Self, &'static str> {
        if authority.contains('@') {
            return Err("a user name in the address is not accepted");
        }
        let (host, port) = match authority.rsplit_once(':') {
            // A colon inside brackets belongs to the address.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            Some(_) | None => (authority, None),
        };
        let port = match port {
            Some(digits)
                if (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                digits.parse().map_err(|_| "a port is a number up to 65535")?
            }
            Some(_) => return Err("a port is a number up to 65535"),
            None => default_port.ok_or("the port is missing")?,
        };
        Ok(Self { host: Host::parse(host)?, port })
    }
}

/// A request that can be judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// `CONNECT`: bytes pass both ways.
    Tunnel(Target),
    /// A plain request.
    Forward {
        /// Where to.
        target: Target,
        /// The head as the server gets it.
        head: Vec<u8>,
        /// How many bytes of body follow.
        body: u64,
    },
}

impl Request {
    pub(super) fn target(&self) -> &Target {
        match self {
            Self::Tunnel(target) | Self::Forward { target, .. } => target,
        }
    }
}

/// A request that is refused for its form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) status: u16,
    pub(super) reason: String,
}

impl Malformed {
    fn new(reason: impl Into<String>) -> Self {
        Self { status: 400, reason: reason.into() }
    }
}

/// Headers that concern this connection only (RFC 9110 section 7.6.1) or that are written anew.
const NOT_FORWARDED: [&str; 10] = [
    "host",
    "connection",
    "proxy-connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "proxy-authorization",
    "proxy-authenticate",
    "http2-settings",
];

/// Reads the head of a request; `head` ends with the empty line.
pub(super) fn parse(head: &[u8]) -> Result<Request, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        // It ended early (bare line feeds) or not at all: two readers could differ about where the body begins.
        Ok(httparse::Status::Complete(_) | httparse::Status::Partial) => {
            return Err(Malformed::new("lines must end in CR LF"));
        }
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Malformed { status: 431, reason: format!("more than {MAX_HEADERS} header lines") });
        }
        Err(error) => return Err(Malformed::new(error.to_string())),
    }
    let (Some(method), Some(path)) = (request.method, request.path) else {
        return Err(Malformed::new("the request line is incomplete"));
    };
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Malformed::new("the request target is not plain ASCII"));
    }

    let mut hosts = Vec::new();
    let mut lengths = Vec::new();
    let mut dropped: Vec<String> = Vec::new();
    for header in &*request.headers {
        let name = header.name.to_ascii_lowercase();
        let value = || {
            std::str::from_utf8(header.value)
                .map(str::trim)
                .map_err(|_| Malformed::new(format!("{} is not plain text", header.name)))
        };
        match name.as_str() {
            "host" => hosts.push(value()?),
            "content-length" => lengths.push(value()?),
            "transfer-encoding" => {
                return Err(Malformed {
                    status: 411,
                    reason: "a plain HTTP request needs Content-Length in place of Transfer-Encoding"
                        .to_owned(),
                });
            }
            "connection" => dropped.extend(value()?.split(',').map(|name| name.trim().to_ascii_lowercase())),
            _ => {}
        }
    }

    let host_header = at_most_one(&hosts, "Host")?;
    let length = at_most_one(&lengths, "Content-Length")?;
    let connect = method == "CONNECT";
    let (authority, rest) = if connect { (path, "") } else { split_absolute(path)? };
    let default_port = if connect { None } else { Some(80) };
    let target = Target::parse(authority, default_port).map_err(Malformed::new)?;
    if let Some(value) = host_header {
        // `Host` may leave the port out of a CONNECT (RFC 9110 asks for it, not every client obeys).
        let default_port = if connect { target.port } else { 80 };
        let named = Target::parse(value, Some(default_port)).map_err(Malformed::new)?;
        if named != target {
            return Err(Malformed::new("Host differs from the address in the request line"));
        }
    }
    if connect {
        return Ok(Request::Tunnel(target));
    }

    let body = match length {
        None => 0,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_err(|_| Malformed::new("Content-Length is too large"))?
        }
        Some(_) => return Err(Malformed::new("Content-Length is not a number")),
    };
    let mut out = Vec::with_capacity(head.len() + 64);
    let slash = if rest.starts_with('/') { "" } else { "/" };
    out.extend_from_slice(format!("{method} {slash}{rest} HTTP/1.1\r\nHost: ").as_bytes());
    out.extend_from_slice(host_value(&target).as_bytes());
    out.extend_from_slice(b"\r\n");
    for header in &*request.headers {
        let name = header.name.to_ascii_lowercase();
        // A client that names `Content-Length` in `Connection` asks for a body without a length.
        let needed = name == "content-length";
        if NOT_FORWARDED.contains(&name.as_str()) || (dropped.contains(&name) && !needed) {
            continue;
        }
        out.extend_from_slice(header.name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(header.value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(Request::Forward { target, head: out, body })
}

fn at_most_one<'a>(values: &[&'a str], name: &str) -> Result<Option<&'a str>, Malformed> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        [_, _, ..] => Err(Malformed::new(format!("more than one {name} header"))),
    }
}

/// Splits `http://authority/path?query` into authority and the rest.
fn split_absolute(path: &str) -> Result<(&str, &str), Malformed> {
    let Some((scheme, rest)) = path.split_once("://") else {
        return Err(Malformed::new("this is a proxy: the request line must hold the whole http:// address"));
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Malformed::new("only http:// is forwarded; use CONNECT for everything else"));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if rest.contains('#') {
        return Err(Malformed::new("a fragment does not belong into a request"));
    }
    if rest.contains('\\') || authority.contains('\\') {
        return Err(Malformed::new("a backslash does not belong into an address"));
    }
    Ok((authority, rest))
}

fn host_value(target: &Target) -> String {
    if target.port == 80 { target.host.to_string() } else { format!("{}:{}", target.host, target.port) }
}

/// An answer of the proxy itself. The reason stands in the status line too, because most clients show that alone.
pub(super) fn answer(status: u16, reason: &str, rule: &str) -> Vec<u8> {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|character| if (' '..='~').contains(&character) { character } else { '?' })
            .take(400)
            .collect()
    };
    let reason = plain(reason);
    let rule = plain(rule);
    let body = format!("cmdgate: {reason}\n");
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nCmdgate-Rule: {rule}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces that requests are made of, good and bad.
    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(vec![
                "GET ",
                "POST ",
                "CONNECT ",
                "http://",
                "a.test",
                "b.test",
                ":80",
                ":443",
                "/",
                "/p?q",
                "@",
                "#",
                " HTTP/1.1",
                "\r\n",
                "\n",
                "\r",
                "Host: a.test",
                "Host: b.test",
                "Content-Length: 3",
                "Content-Length: 5",
                "X: y",
                "Transfer-Encoding: chunked",
                "Connection: content-length, host",
                "\r\n\r\n",
                " ",
                "\t",
                ":",
                "\0",
                "é",
            ])
            .prop_map(str::to_owned),
            "[ -~]{0,3}",
        ]
    }

    fn request() -> impl Strategy<Value = Vec<u8>> {
        let free = prop::collection::vec(piece(), 0..14).prop_map(|pieces| pieces.concat());
        let shaped = prop::collection::vec(piece(), 0..4)
            .prop_map(|pieces| format!("POST http://a.test{} HTTP/1.1\r\n", pieces.concat()));
        let start = prop_oneof![free, shaped, Just("GET http://a.test/ HTTP/1.1\r\n".to_owned())];
        (start, prop::collection::vec(piece(), 0..6))
            .prop_map(|(start, rest)| format!("{start}{}\r\n\r\n", rest.concat()).into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        /// What a server gets is one request, for the host that was judged, with the body length that is enforced.
        #[test]
        fn what_is_passed_on_says_what_was_judged(bytes in request()) {
            let Ok(Request::Forward { target, head, body }) = parse(&bytes) else { return Ok(()) };
            prop_assert_eq!(memchr::memmem::find_iter(&head, "\r\n\r\n").collect::<Vec<_>>(), vec![head.len() - 4]);
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS + 2];
            let mut again = httparse::Request::new(&mut headers);
            prop_assert_eq!(again.parse(&head), Ok(httparse::Status::Complete(head.len())));
            prop_assert!(again.path.unwrap().starts_with('/'));
            let values = |name: &str| {
                again.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name))
                    .map(|header| String::from_utf8_lossy(header.value).trim().to_owned()).collect::<Vec<_>>()
            };
            prop_assert_eq!(values("host"), vec![host_value(&target)]);
            prop_assert_eq!(values("connection"), vec!["close".to_owned()]);
            prop_assert_eq!(values("transfer-encoding"), Vec::<String>::new());
            let length = values("content-length").first().map_or(0, |value| value.parse::<u64>().unwrap());
            prop_assert_eq!(length, body);
        }
    }
}

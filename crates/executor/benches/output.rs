//! What capturing costs beside a reader that throws everything away. Both read the same pipe, 64 KiB at a time.
//!
//! `cargo bench -p cmdgate-executor --bench output`; the median of `captured` should be at most 1/0.7 of `discarded`.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run should stop")]

use std::io::{Read as _, Write as _};

use cmdgate_executor::output::{Capture, Keep, OutputMode, READ_SIZE, Stream};
use divan::counter::BytesCount;

const TOTAL: usize = 512 * 1024 * 1024;

fn main() {
    divan::main();
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
    bencher.counter(BytesCount::new(TOTAL)).bench_local(|| {
        let mode = OutputMode { keep: Keep::HeadAndTail, ..OutputMode::default() };
        let mut capture = Capture::new(&mode, Stream::Stdout);
        through_a_pipe(&line.text(), |bytes| capture.push(bytes));
        capture.finish()
    });
}

//! `cargo xtask bench`: every benchmark, optimised; `cargo xtask bench hook`: the whole program, as an agent starts it.

use crate::steps::{cargo, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs all benchmarks, or those whose name holds the filter.
pub fn run(filter: Option<&str>) -> Result<()> {
    let mut command = cargo();
    command.args(["bench", "--workspace", "--benches"]);
    if let Some(filter) = filter {
        command.args(["--", filter]);
    }
    let status = command.status()?;
    if status.success() { Ok(()) } else { bail!("cargo bench ended with {status}") }
}

/// A policy as a person has it after some weeks.
const POLICY: &str = include_str!("../data/bench-user.toml");
/// And what a project says besides.
const PROJECT: &str = include_str!("../data/bench-project.toml");
/// What is asked, in turn: known to be harmless, allowed by a rule, put into the sandbox, asked about.
const COMMANDS: [&str; 4] = [
    "rg -n 'fn main' src | head -20",
    "cargo test --workspace",
    "git log --oneline -5",
    "npm install left-pad",
];
/// How many hooks are started at once.
const AT_ONCE: usize = 10;

/// Measures `harness classify`, `check` and `hook` from start to end, each in turn `rounds` times; and those of another
/// build of the program in between, to see what a change has brought.
pub fn hook(rounds: usize, before: Option<&Path>) -> Result<()> {
    let built = cargo().args(["build", "--release", "--package", "cmdgate-harness"]).status()?;
    if !built.success() {
        bail!("cargo build ended with {built}");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut benches = Vec::new();
    if let Some(before) = before {
        benches.push(("before: ", Bench::new(&std::path::absolute(before)?, &target)?));
    }
    benches.push(("", Bench::new(&target.join("release/harness"), &target)?));
    let mut taken: Vec<[Vec<Duration>; 3]> = benches.iter().map(|_| Default::default()).collect();
    for round in 0..=rounds {
        for ((_, bench), times) in benches.iter().zip(&mut taken) {
            for (door, times) in Door::ALL.into_iter().zip(times) {
                let took = bench.time(door, round)?;
                // The first makes what is made once only, such as the trace.
                if round > 0 {
                    times.push(took);
                }
            }
        }
    }
    let mut out = io::stdout();
    writeln!(out, "{rounds} rounds of each in turn, from start to end, in ms:")?;
    for ((name, bench), [classify, check, hook]) in benches.iter().zip(&taken) {
        writeln!(
            out,
            "\n{name:20} {:>8} {:>8} {:>8} {:>13} {:>13}",
            "p10", "median", "p90", "instructions", "system calls"
        )?;
        for (door, times) in Door::ALL.into_iter().zip([classify, check, hook]) {
            let at = |percent| millis(percentile(times, percent));
            let counts = [bench.instructions(door)?, bench.system_calls(door)?]
                .map(|counts| counts.map_or_else(|| "not counted".to_owned(), |count| count.to_string()));
            let [instructions, calls] = counts;
            writeln!(
                out,
                "{:20} {:8.2} {:8.2} {:8.2} {instructions:>13} {calls:>13}",
                door.name(),
                at(10),
                at(50),
                at(90)
            )?;
        }
        for (door, times) in [(Door::Check, check), (Door::Hook, hook)] {
            let of = |percent| millis(percentile(times, percent)) / millis(percentile(classify, percent));
            writeln!(
                out,
                "{} against classify: {:.2} of the medians, {:.2} of p10, {:.2} median of the pairs",
                door.name(),
                of(50),
                of(10),
                median_ratio(times, classify)
            )?;
        }
        let together: Vec<Duration> =
            (0..rounds.div_ceil(5)).map(|_| bench.together()).collect::<Result<_>>()?;
        writeln!(
            out,
            "{AT_ONCE} hooks at once, until the last has ended: {:.2} p10, {:.2} median",
            millis(percentile(&together, 10)),
            millis(percentile(&together, 50))
        )?;
    }
    Ok(())
}

fn median_ratio(times: &[Duration], base: &[Duration]) -> f64 {
    let mut ratios: Vec<f64> =
        times.iter().zip(base).map(|(time, base)| millis(*time) / millis(*base)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

#[derive(Clone, Copy)]
enum Door {
    Classify,
    Check,
    Hook,
}

impl Door {
    const ALL: [Self; 3] = [Self::Classify, Self::Check, Self::Hook];

    const fn name(self) -> &'static str {
        match self {
            Self::Classify => "classify",
            Self::Check => "check",
            Self::Hook => "hook",
        }
    }
}

/// A project, a home directory and a trace of its own.
struct Bench {
    program: PathBuf,
    scratch: tempfile::TempDir,
}

impl Bench {
    fn new(program: &Path, target: &Path) -> Result<Self> {
        // On the disk on which the project lies: a trace in memory would be no measure.
        let scratch = tempfile::tempdir_in(target)?;
        let bench = Self { program: program.to_path_buf(), scratch };
        let project = bench.project();
        fs::create_dir_all(project.join(".git"))?;
        fs::create_dir_all(project.join("src"))?;
        fs::write(project.join(".git/config"), "[core]\n\tbare = false\n")?;
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        fs::write(project.join("src/main.rs"), "fn main() {}\n")?;
        fs::write(project.join(".cmdgate.toml"), PROJECT)?;
        let config = bench.scratch.path().join("home/.config/cmdgate");
        fs::create_dir_all(&config)?;
        fs::write(config.join("policy.toml"), POLICY)?;
        let trusted = bench.command(&[]).args(["trust", "--yes"]).output()?;
        if !trusted.status.success() {
            bail!("harness trust: {}", String::from_utf8_lossy(&trusted.stderr));
        }
        Ok(bench)
    }

    fn project(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    /// The program, perhaps inside another.
    fn command(&self, wrapper: &[&str]) -> Command {
        let mut command = match wrapper {
            [] => Command::new(&self.program),
            [outer, rest @ ..] => {
                let mut command = Command::new(outer);
                command.args(rest).arg(&self.program);
                command
            }
        };
        command.current_dir(self.project()).env_clear();
        command.env("HOME", self.scratch.path().join("home")).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn line(&self, wrapper: &[&str], door: Door, round: usize) -> (Command, String) {
        let asked = COMMANDS.iter().cycle().nth(round % COMMANDS.len()).copied().unwrap_or_default();
        let mut command = self.command(wrapper);
        command.arg(door.name());
        let input = match door {
            Door::Classify | Door::Check => {
                command.args(["--grammar", "sequence", "--", asked]);
                String::new()
            }
            Door::Hook => {
                command.arg("claude-code").stdin(Stdio::piped());
                payload(&self.project(), asked)
            }
        };
        (command, input)
    }

    /// From just before the start until it has ended.
    fn time(&self, door: Door, round: usize) -> Result<Duration> {
        let (mut command, input) = self.line(&[], door, round);
        let begin = Instant::now();
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        let took = begin.elapsed();
        let answered = match door {
            Door::Classify | Door::Check => matches!(output.status.code(), Some(0 | 10 | 20)),
            Door::Hook => output.status.success() && output.stderr.is_empty(),
        };
        if !answered || output.stdout.is_empty() {
            bail!("{} answered {output:?}", door.name());
        }
        Ok(took)
    }

    fn together(&self) -> Result<Duration> {
        let mut lines: Vec<_> = (0..AT_ONCE).map(|round| self.line(&[], Door::Hook, round)).collect();
        let begin = Instant::now();
        let mut children = Vec::with_capacity(AT_ONCE);
        for (command, input) in &mut lines {
            let mut child = command.spawn()?;
            child.stdin.take().context("its input is piped")?.write_all(input.as_bytes())?;
            children.push(child);
        }
        for child in children {
            let output = child.wait_with_output()?;
            if !output.status.success() || !output.stderr.is_empty() {
                bail!("one of several hooks answered {output:?}");
            }
        }
        Ok(begin.elapsed())
    }

    /// Instructions, as callgrind counts them, on average of the commands; nothing where there is no valgrind.
    fn instructions(&self, door: Door) -> Result<Option<u64>> {
        let valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
        self.counted(&valgrind, door, |text| {
            let line = text.lines().find(|line| line.contains("Collected :"))?;
            line.rsplit(' ').next()?.parse().ok()
        })
    }

    /// System calls of all threads, as strace counts them, on average of the commands.
    fn system_calls(&self, door: Door) -> Result<Option<u64>> {
        self.counted(&["strace", "-f", "-qq"], door, |text| u64::try_from(text.lines().count()).ok())
    }

    fn counted(
        &self,
        wrapper: &[&str],
        door: Door,
        count: impl Fn(&str) -> Option<u64>,
    ) -> Result<Option<u64>> {
        let mut counts = Vec::with_capacity(COMMANDS.len());
        for round in 0..COMMANDS.len() {
            let (mut command, input) = self.line(wrapper, door, round);
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(input.as_bytes())?;
            }
            let output = child.wait_with_output()?;
            counts.extend(count(&String::from_utf8_lossy(&output.stderr)));
        }
        Ok(counts.iter().sum::<u64>().checked_div(u64::try_from(counts.len())?))
    }
}

/// What Claude Code sends before it runs a command.
fn payload(project: &Path, command: &str) -> String {
    serde_json::json!({
        "session_id": "00893aaf-19fa-41d2-8238-13269b9b3ca0",
        "transcript_path": "/home/user/.claude/projects/p/00893aaf.jsonl",
        "cwd": project,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": { "command": command, "description": "Asked by the benchmark" },
        "tool_use_id": "toolu_01ABC123",
    })
    .to_string()
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

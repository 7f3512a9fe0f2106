//! `cargo xtask demo`: the main job on a real repository, in under a minute once built.

use crate::packages::{BUBBLEWRAP, GIT, ensure};
use crate::steps::cargo;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What one act of the demonstration must show.
struct Act {
    title: &'static str,
    args: &'static [&'static str],
    command: &'static str,
    /// The exit code that it must have.
    exit: i32,
    /// What its output must hold.
    shows: &'static str,
}

const ACTS: &[Act] = &[
    Act {
        title: "A safe command runs without asking, in a read-only sandbox",
        args: &["run"],
        command: "git log --oneline | head -3",
        exit: 0,
        shows: "Exit code: 0",
    },
    Act {
        title: "A dangerous spelling of a safe-looking program is held back, with the reason under the exact characters",
        args: &["explain"],
        command: "sort -ro notes.txt README.md",
        exit: 20,
        shows: "^^^",
    },
    Act {
        title: "So is a quiet read outside the project",
        args: &["explain"],
        command: "grep -f/etc/passwd README.md",
        exit: 20,
        shows: "path_outside",
    },
    Act {
        title: "A write that a rule allowed is still stopped by the kernel in `read_only`",
        args: &["run", "--policy", "allow-touch.toml"],
        command: "touch planted.txt",
        exit: 1,
        shows: "Read-only file system",
    },
    Act {
        title: "The same write works in `workspace_write`, but not into the hooks of git",
        args: &["run", "--sandbox", "workspace_write", "--approval", "never"],
        command: "touch made.txt && ls made.txt && touch .git/hooks/pre-commit",
        exit: 1,
        shows: "made.txt",
    },
    Act {
        title: "There is no network",
        args: &["run", "--sandbox", "workspace_write", "--approval", "never"],
        command: "bash -c \"echo > /dev/tcp/192.0.2.1/80\"",
        exit: 1,
        shows: "unreachable",
    },
    Act {
        title: "A timeout kills the whole tree, whatever it does to stay alive",
        args: &["run", "--sandbox", "workspace_write", "--approval", "never", "--timeout-ms", "1000"],
        command: "trap \"\" TERM; setsid sleep 300 & sleep 300",
        exit: 124,
        shows: "TIMEOUT",
    },
];

/// Runs the demonstration.
pub fn run() -> Result<()> {
    let mut out = io::stdout();
    ensure(&[BUBBLEWRAP, GIT])?;
    writeln!(out, "Building the `harness` program; the first time this takes some minutes …")?;
    let status = cargo().args(["build", "--package", "cmdgate-harness"]).status()?;
    if !status.success() {
        bail!("the build failed");
    }
    let harness = harness_binary()?;
    let scratch = tempfile::tempdir().context("making a scratch directory")?;
    let project = scratch.path().join("project");
    make_repository(&project)?;
    let program = |args: &[&str]| {
        let mut command = Command::new(&harness);
        command
            .args(args)
            .current_dir(&project)
            .env("XDG_STATE_HOME", scratch.path().join("state"))
            .env("XDG_CONFIG_HOME", scratch.path().join("config"));
        command
    };
    for (at, act) in ACTS.iter().enumerate() {
        writeln!(out, "\n── {}. {}\n", at + 1, act.title)?;
        writeln!(out, "$ harness {} -- '{}'", act.args.join(" "), act.command)?;
        let output = program(&[act.args, &["--", act.command]].concat()).output()?;
        show(&output)?;
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        let text = String::from_utf8_lossy(&text);
        if output.status.code() != Some(act.exit) || !text.contains(act.shows) {
            bail!(
                "this should have ended with {} and shown {:?}; it ended with {}. `harness doctor` says what this \
                 machine can enforce",
                act.exit,
                act.shows,
                output.status
            );
        }
    }
    writeln!(out, "\n── {}. All that ran was recorded\n\n$ harness log tail", ACTS.len() + 1)?;
    show(&program(&["log", "tail"]).output()?)?;
    let leftover = Command::new("pgrep").args(["-f", "sleep 300"]).output();
    if leftover.is_ok_and(|output| output.status.success()) {
        writeln!(out, "(some `sleep 300` runs on this machine; if it is not yours, that is a fault)")?;
    }
    writeln!(
        out,
        "\nTry next, here:\n  \
         cargo install --locked --path crates/harness # the `harness` program\n\
         and in a project of yours:\n  \
         harness doctor                               # what this machine can enforce\n  \
         harness explain -- 'your command'            # why something is held back\n  \
         harness install claude-code --dry-run        # put it in front of an agent\n  \
         harness log                                  # what ran, what was refused"
    )?;
    Ok(())
}

fn show(output: &Output) -> Result<()> {
    let mut out = io::stdout().lock();
    for bytes in [&output.stdout, &output.stderr] {
        for line in String::from_utf8_lossy(bytes).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "  (exit {})", output.status.code().unwrap_or(-1))?;
    Ok(())
}

/// The program that was just built.
pub fn harness_binary() -> Result<PathBuf> {
    // A relative directory is relative to where cargo builds, and settings of cargo can name another one as well.
    let metadata = cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).output()?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata.stdout).context("asking cargo where it builds")?;
    let target = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    let path = Path::new(target.context("cargo does not say where it builds")?)
        .join("debug")
        .join(format!("harness{}", std::env::consts::EXE_SUFFIX));
    if path.is_file() { Ok(path) } else { bail!("{} is not there", path.display()) }
}

fn make_repository(project: &Path) -> Result<()> {
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("README.md"), "# A small project\n\nIt says hello.\n")?;
    fs::write(project.join("src/main.py"), "print('hello')\n")?;
    fs::write(
        project.join("allow-touch.toml"),
        "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"touch **\"\n",
    )?;
    let git = |args: &[&str]| -> Result<()> {
        let status = Command::new("git")
            .args([
                "-c",
                "user.name=demo",
                "-c",
                "user.email=demo@example.com",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(args)
            .current_dir(project)
            .status()?;
        if status.success() { Ok(()) } else { bail!("git {} failed", args.join(" ")) }
    };
    git(&["init", "--quiet"])?;
    git(&["add", "."])?;
    git(&["commit", "--quiet", "-m", "Say hello"])?;
    fs::write(project.join("src/main.py"), "print('hello, world')\n")?;
    git(&["commit", "--quiet", "-am", "Greet the world"])
}

//! Whole-product tests of cmdgate: shared helpers.

pub mod fuzz;
pub mod model;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// The `harness` program, built from this very source before it is first used.
///
/// # Panics
///
/// When it cannot be built.
pub fn harness_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["build", "--quiet", "--package", "cmdgate-harness"])
            .current_dir(workspace())
            .status()
            .expect("cargo starts");
        assert!(status.success(), "the harness program must build");
        // This test stands in target/<profile>/deps.
        let here = std::env::current_exe().expect("a test has a path");
        let target = here.ancestors().nth(3).expect("tests stand in target/<profile>/deps");
        target.join("debug").join(format!("harness{}", std::env::consts::EXE_SUFFIX))
    })
}

/// Starts a hook as an agent does: with an ordinary search path and without what Cargo sets for its tests, which would make
/// the environment one that commands may not run in.
///
/// # Panics
///
/// When it cannot be started.
pub fn start_hook(command: &mut Command) -> Child {
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the hook starts")
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests stand in the workspace").to_path_buf()
}

/// What a run of `harness` gave.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Standard output as JSON.
    ///
    /// # Panics
    ///
    /// When it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A git repository in a scratch directory, with a home, configuration and state of its own beside it.
#[derive(Debug)]
pub struct Project {
    scratch: tempfile::TempDir,
}

impl Default for Project {
    fn default() -> Self {
        Self::new()
    }
}

impl Project {
    /// A repository with one commit: `a.txt`, `src/main.py`, `README.md`, and beside it `outside/secret.txt`.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    pub fn new() -> Self {
        let project = Self { scratch: tempfile::tempdir().expect("a scratch directory") };
        for (path, text) in [
            ("project/a.txt", "gamma\nalpha\nbeta\n"),
            ("project/README.md", "# Title\n"),
            ("project/src/main.py", "print('hi')\n"),
            ("outside/secret.txt", "CANARY-SECRET\n"),
            ("home/.gitconfig", "[user]\n\tname = T\n\temail = t@example.com\n"),
        ] {
            project.write_beside(path, text);
        }
        for args in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "."],
            &["commit", "--quiet", "-m", "one"],
        ] {
            let status = Command::new("git")
                .args(args)
                .current_dir(project.root())
                .env("HOME", project.home())
                .status()
                .expect("git starts");
            assert!(status.success(), "git {args:?}");
        }
        project
    }

    /// The scratch directory's real path.
    ///
    /// # Panics
    ///
    /// When it is gone.
    pub fn scratch(&self) -> PathBuf {
        self.scratch.path().canonicalize().expect("the scratch directory exists")
    }

    /// The project root.
    pub fn root(&self) -> PathBuf {
        self.scratch().join("project")
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.scratch().join("home")
    }

    /// Writes a file of the project.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) {
        self.write_beside(Path::new("project").join(path), text);
    }

    /// Writes a file of the scratch directory.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn write_beside(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.scratch.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a parent")).expect("its directory");
        std::fs::write(&path, text).expect("the file is written");
    }

    /// A `harness` command in the project, with nothing of the caller's own configuration.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(harness_binary());
        command
            .args(args)
            .current_dir(self.root())
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.scratch().join("state"))
            .env("XDG_CONFIG_HOME", self.scratch().join("config"))
            .env_remove("NO_COLOR");
        // Where agents keep their settings instead of below the home directory.
        for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs `harness` in the project.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn harness<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        self.command(args).output().expect("harness starts").into()
    }

    /// Runs `harness run` with these options on one command.
    pub fn run(&self, options: &[&str], command: &str) -> Ran {
        self.harness([&["run"], options, &["--", command]].concat())
    }
}

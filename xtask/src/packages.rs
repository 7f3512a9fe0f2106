//! Installs what is missing, after saying so.

use anyhow::{Context, Result, bail};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that is needed, and the packages that bring it.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// What must be on `PATH`, or an absolute path that must exist, or after `python3:` a module of it.
    pub program: &'static str,
    /// Debian and Ubuntu.
    pub apt: &'static str,
    /// Fedora.
    pub dnf: &'static str,
    /// Arch.
    pub pacman: &'static str,
    /// Alpine.
    pub apk: &'static str,
    /// macOS; empty where macOS has it or cannot have it.
    pub brew: &'static str,
}

const fn same(program: &'static str, package: &'static str) -> Need {
    Need { program, apt: package, dnf: package, pacman: package, apk: package, brew: package }
}

/// The sandbox itself.
pub const BUBBLEWRAP: Need = Need { brew: "", ..same("bwrap", "bubblewrap") };
/// The repository that everything works on.
pub const GIT: Need = same("git", "git");

/// What the tests run besides the sandbox: each is confined, traced or compared with its table.
pub const FOR_TESTS: &[Need] = &[
    BUBBLEWRAP,
    GIT,
    Need { brew: "", ..same("strace", "strace") },
    same("rg", "ripgrep"),
    Need { apt: "fd-find", dnf: "fd-find", ..same("fd", "fd") },
    same("tree", "tree"),
    same("jq", "jq"),
    same("tmux", "tmux"),
    same("curl", "curl"),
    same("gawk", "gawk"),
    same("mawk", "mawk"),
    same("file", "file"),
    same("unzip", "unzip"),
    same("zip", "zip"),
    Need {
        apt: "bsdextrautils",
        dnf: "util-linux",
        pacman: "util-linux",
        apk: "util-linux-misc",
        brew: "",
        ..same("column", "")
    },
    Need { apt: "xxd", dnf: "vim-common", pacman: "tinyxxd", apk: "xxd", brew: "", ..same("xxd", "") },
    Need { brew: "", ..same("objdump", "binutils") },
    Need {
        apt: "libcap2-bin",
        dnf: "libcap",
        pacman: "libcap",
        apk: "libcap-utils",
        brew: "",
        ..same("getcap", "")
    },
    Need { brew: "", ..same("setfattr", "attr") },
    Need {
        apt: "util-linux",
        dnf: "util-linux",
        pacman: "util-linux",
        apk: "setpriv",
        brew: "",
        ..same("setpriv", "")
    },
    Need {
        apt: "passwd",
        dnf: "shadow-utils",
        pacman: "shadow",
        apk: "shadow",
        brew: "",
        ..same("useradd", "")
    },
    Need {
        apt: "procps",
        dnf: "procps-ng",
        pacman: "procps-ng",
        apk: "procps",
        brew: "",
        ..same("pgrep", "")
    },
    Need { apt: "gcc", dnf: "gcc", pacman: "gcc", apk: "build-base", brew: "", ..same("cc", "") },
    Need {
        apt: "python3",
        dnf: "python3",
        pacman: "python",
        apk: "python3",
        brew: "python3",
        ..same("python3", "")
    },
    // For the Model Context Protocol's Python client, which a test installs from its registry.
    Need {
        apt: "python3-venv",
        dnf: "python3",
        pacman: "python",
        apk: "python3",
        brew: "python3",
        ..same("python3:ensurepip", "")
    },
    Need { apt: "nodejs", dnf: "nodejs", pacman: "nodejs", apk: "nodejs", brew: "node", ..same("node", "") },
    same("npm", "npm"),
];

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
    Pacman,
    Apk,
    Brew,
}

impl Manager {
    fn found() -> Option<Self> {
        [
            ("apt-get", Self::Apt),
            ("dnf", Self::Dnf),
            ("pacman", Self::Pacman),
            ("apk", Self::Apk),
            ("brew", Self::Brew),
        ]
        .into_iter()
        .find(|(program, _)| on_path(program))
        .map(|(_, manager)| manager)
    }

    const fn package(self, need: &Need) -> &'static str {
        match self {
            Self::Apt => need.apt,
            Self::Dnf => need.dnf,
            Self::Pacman => need.pacman,
            Self::Apk => need.apk,
            Self::Brew => need.brew,
        }
    }

    const fn install(self) -> &'static [&'static str] {
        match self {
            Self::Apt => &["apt-get", "install", "--yes", "--no-install-recommends"],
            Self::Dnf => &["dnf", "install", "--assumeyes"],
            Self::Pacman => &["pacman", "-S", "--noconfirm", "--needed"],
            Self::Apk => &["apk", "add"],
            Self::Brew => &["brew", "install"],
        }
    }
}

/// Whether a program is there.
pub fn on_path(program: &str) -> bool {
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    if let Some(module) = program.strip_prefix("python3:") {
        return Command::new("python3")
            .args(["-c", &format!("import {module}")])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
    }
    // Debian calls fd `fdfind`.
    let names: &[&str] = if program == "fd" { &["fd", "fdfind"] } else { &[program] };
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| names.iter().any(|name| directory.join(name).is_file()))
    })
}

/// Installs what is missing of `needs`, and says so before it does.
pub fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !on_path(need.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs: Vec<&str> = missing.iter().map(|need| need.program).collect();
    let mut out = io::stdout().lock();
    writeln!(out, "Missing: {}", programs.join(", "))?;
    let Some(manager) = Manager::found() else {
        let packages: Vec<&str> = missing.iter().map(|need| need.apt).collect();
        bail!(
            "no apt, dnf, pacman, apk or brew here: install these yourself (Debian's names): {}",
            packages.join(" ")
        );
    };
    let mut packages: Vec<&str> =
        missing.iter().map(|need| manager.package(need)).filter(|name| !name.is_empty()).collect();
    packages.sort_unstable();
    packages.dedup();
    let mut line: Vec<&str> = Vec::new();
    if manager != Manager::Brew && !is_root() {
        line.push("sudo");
    }
    line.extend(manager.install());
    line.extend(&packages);
    writeln!(out, "Installing with: {}", line.join(" "))?;
    out.flush()?;
    if manager == Manager::Apt {
        let mut update = line.iter().copied().take_while(|word| *word != "install").collect::<Vec<_>>();
        update.push("update");
        // A failed refresh is not yet a failed installation: the lists may be good enough.
        let _ = run_quietly(&update);
    }
    run_quietly(&line)?;
    let still: Vec<&str> = missing
        .iter()
        .filter(|need| !manager.package(need).is_empty() && !on_path(need.program))
        .map(|need| need.program)
        .collect();
    if !still.is_empty() {
        bail!("installed, but still not on PATH: {}", still.join(", "));
    }
    Ok(())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs a line and shows its output only when it fails.
fn run_quietly(line: &[&str]) -> Result<()> {
    let (program, args) = line.split_first().context("nothing to run")?;
    let output = Command::new(program)
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {program}"))?;
    if !output.status.success() {
        io::stdout().write_all(&output.stdout)?;
        io::stderr().write_all(&output.stderr)?;
        bail!("`{}` failed: install the packages yourself and run this again", line.join(" "));
    }
    Ok(())
}

//! Interpreters, compilers, package managers and other programs that run code, of which only the forms that print a
//! version or a help text are judged.
//!
//! Each form was run under a kernel trace that showed no write, no network and no program but its own. The forms that
//! are missing for that reason: `java -version` (writes `/tmp/hsperfdata_*`), `npm --help` and `npm ls` (write a log),
//! `cargo -vV` (runs `lsb_release`), `rustup --version` (runs `rustc`), `yarn --version` (writes a cache, and runs the program that `.yarnrc` names),
//! `terraform version` and `kubectl version --client` (reach the network), `go env` (runs the C compiler).

use crate::condition::{Condition, Conditions};
use crate::finding::Code;
use crate::spec::{CommandSpec, Flag, Operands, Rule, Syntax, Tweak, inert};

/// Everything else that these programs do.
const ELSE: &str = "runs code; only the form that prints its version is known to be harmless";

const RULES: &[Rule] = &[Rule::Unless(&[], Tweak::Refuse(Code::ProgramRefused, ELSE))];

/// A program of which only flags that end it are judged.
const fn only(
    names: &'static [&'static str],
    about: &'static str,
    checked: &'static str,
    flags: &'static [Flag],
) -> CommandSpec {
    CommandSpec {
        names,
        about,
        checked,
        flags,
        operands: Operands::at_most(&[], ELSE),
        rules: RULES,
        conditions: Conditions::NONE.with(Condition::ToolchainFixed),
        ..CommandSpec::JUDGED
    }
}

const SHORT_V: &[Flag] = &[inert(&["-v", "--version"]).ends()];
const CAPITAL_V: &[Flag] = &[inert(&["-V", "--version"]).ends()];
const LONG: &[Flag] = &[inert(&["--version"]).ends()];
const HELP_SHORT_V: &[Flag] = &[inert(&["-v", "--version"]).ends(), inert(&["-h", "--help"]).ends()];
const HELP_CAPITAL_V: &[Flag] = &[inert(&["-V", "--version"]).ends(), inert(&["-h", "--help"]).ends()];
/// Not `-v`: beside another flag it runs the compiler proper and the linker (`gcc -v --version`).
const COMPILER: &[Flag] = &[inert(&["--version"]).ends(), inert(&["--help"]).ends()];
/// `rustc -vV` adds the host; `-v` alone asks for a file.
const RUSTC: &[Flag] =
    &[inert(&["-V", "--version"]).ends(), inert(&["-v", "--verbose"]), inert(&["-h", "--help"]).ends()];

const fn words(name: &'static [&'static str], about: &'static str) -> CommandSpec {
    CommandSpec { names: name, about, ..CommandSpec::JUDGED }
}

const VERSION_WORD: &[CommandSpec] = &[words(&["version"], "prints the version")];

/// A program whose version is a subcommand.
const fn subcommand(
    names: &'static [&'static str],
    about: &'static str,
    checked: &'static str,
    flags: &'static [Flag],
) -> CommandSpec {
    CommandSpec {
        names,
        about,
        checked,
        flags,
        subcommands: VERSION_WORD,
        conditions: Conditions::NONE.with(Condition::ToolchainFixed),
        ..CommandSpec::JUDGED
    }
}

/// One table a program.
pub(super) static SPECS: [CommandSpec; 30] = [
    only(
        &[
            "python3",
            "python",
            "python2",
            "python3.9",
            "python3.10",
            "python3.11",
            "python3.12",
            "python3.13",
        ],
        "interprets Python",
        "CPython 3.11.2",
        HELP_CAPITAL_V,
    ),
    only(&["node", "nodejs"], "interprets JavaScript", "Node.js 20.20.2", HELP_SHORT_V),
    // Reads the project's `.npmrc`, whose `globalconfig` may name any file; unknown keys of it are shown.
    CommandSpec {
        conditions: CONFINED,
        ..only(&["npm", "npx"], "installs and runs JavaScript packages", "npm 11.19.1", SHORT_V)
    },
    only(&["deno"], "interprets JavaScript", "deno 2.9.6", CAPITAL_V),
    only(&["bun"], "interprets JavaScript", "bun 1.4.5", SHORT_V),
    only(&["tsc"], "compiles TypeScript", "TypeScript 7.0.2", SHORT_V),
    only(&["eslint"], "checks JavaScript by rules of the project", "eslint 10.15.0", SHORT_V),
    only(&["prettier"], "formats files", "prettier 3.10.1", LONG),
    only(
        &["perl"],
        "interprets Perl",
        "Perl 5.36.0",
        &[inert(&["-v", "--version"]).ends(), inert(&["-h"]).ends()],
    ),
    // On a terminal its help runs a pager.
    CommandSpec { conditions: PAGED, ..only(&["ruby"], "interprets Ruby", "Ruby 3.1.2", HELP_SHORT_V_RUBY) },
    only(&["php"], "interprets PHP", "PHP 8.2", HELP_SHORT_V),
    only(&["cargo"], "builds and runs Rust projects", "cargo 1.95.0", HELP_CAPITAL_V),
    only(&["rustc"], "compiles Rust", "rustc 1.95.0", RUSTC),
    only(&["rustfmt"], "formats Rust files", "rustfmt 1.9.0", CAPITAL_V),
    only(&["cargo-clippy", "clippy-driver"], "checks Rust projects", "clippy 0.1.95", LONG),
    // From Go 1.23 on it counts its runs in files below the home directory, and starts itself again to look after them
    // (trace of go 1.27.3): where the home directory is not visible it does neither.
    CommandSpec {
        conditions: CONFINED,
        ..subcommand(&["go"], "builds and runs Go projects", "go 1.19.8", &[])
    },
    only(
        &["gcc", "g++", "cc", "c++", "cpp", "gcc-12", "g++-12"],
        "compiles C and C++",
        "GCC 12.2.0",
        COMPILER,
    ),
    only(&["ld"], "links object files", "GNU binutils 2.40", SHORT_V),
    only(&["as"], "assembles", "GNU binutils 2.40", LONG),
    only(&["make", "gmake"], "runs the commands of a makefile", "GNU Make 4.3", HELP_SHORT_V),
    only(&["cmake"], "configures builds", "CMake 3.25.1", LONG),
    only(&["docker"], "talks to the Docker daemon", "Docker 28.2.2", SHORT_V),
    // Looks for a newer version when its output is a terminal.
    CommandSpec { conditions: PAGED, ..only(&["gh"], "talks to GitHub", "gh 2.23.0", LONG) },
    CommandSpec {
        syntax: Syntax::SINGLE_DASH,
        ..only(
            &["sqlite3"],
            "opens and creates databases",
            "SQLite 3.40.1",
            &[inert(&["-version", "--version"]).ends()],
        )
    },
    only(&["uv", "uvx"], "installs and runs Python packages", "uv 0.13.9", CAPITAL_V),
    subcommand(&["ruff"], "checks and formats Python files", "ruff 0.17.6", CAPITAL_V),
    only(&["black"], "formats Python files", "black 26.10.1", LONG),
    only(&["mypy"], "checks Python files", "mypy 2.4.1", CAPITAL_V),
    only(&["isort"], "sorts imports of Python files", "isort 9.0.2", LONG),
    only(&["tmux"], "runs terminals", "tmux 3.3a", &[inert(&["-V"]).ends()]),
];

const HELP_SHORT_V_RUBY: &[Flag] =
    &[inert(&["-v", "--version"]).ends(), inert(&["-h"]).ends(), inert(&["--help"]).ends()];
const CONFINED: Conditions = Conditions::NONE.with(Condition::ToolchainFixed).with(Condition::ReadsConfined);
const PAGED: Conditions = Conditions::NONE.with(Condition::ToolchainFixed).with(Condition::OutputNotTerminal);

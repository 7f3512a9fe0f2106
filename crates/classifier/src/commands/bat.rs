//! `bat`

use crate::condition::{Condition, Conditions};
use crate::spec::{CommandSpec, Operands, Role, discloses, inert, runs, writes};

const PAGER: &str = "runs a pager";
const WHEN: Role = Role::OneOf(&["auto", "never", "always"]);

/// Without a terminal it prints like `cat`, unless its configuration file in the home directory says that it always
/// pages: nothing outside the project is visible then. It reads the git index by a library that runs nothing.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["bat", "batcat"],
    about: "prints files with colours",
    checked: "bat 0.22.1",
    flags: &[
        inert(&["-A", "--show-all", "--show-nonprintable"]),
        inert(&["--nonprintable-notation"]).takes(Role::OneOf(&["unicode", "caret"])).elsewhere(),
        inert(&["--binary"]).takes(Role::OneOf(&["no-printing", "as-text"])).elsewhere(),
        inert(&["-p", "--plain"]),
        inert(&["-l", "--language"]).takes_text(),
        inert(&["-H", "--highlight-line"]).takes_text(),
        inert(&["--file-name"]).takes_text(),
        inert(&["-d", "--diff"]),
        inert(&["--diff-context"]).takes_number(),
        inert(&["--tabs"]).takes_number(),
        inert(&["--wrap"]).takes(Role::OneOf(&["auto", "never", "character"])),
        inert(&["-S", "--chop-long-lines"]).elsewhere(),
        inert(&["--terminal-width"]).takes_number(),
        inert(&["-n", "--number"]),
        inert(&["--color"]).takes(WHEN),
        inert(&["--italic-text"]).takes(Role::OneOf(&["always", "never"])),
        inert(&["--decorations"]).takes(WHEN),
        inert(&["-f", "--force-colorization"]),
        // `always` is held back as a value that is not in the table.
        inert(&["--paging"]).takes(Role::OneOf(&["auto", "never"])),
        inert(&["-P", "--no-paging", "--no-pager"]),
        runs(&["--pager"], PAGER).takes(Role::Program),
        inert(&["-m", "--map-syntax"]).takes_text(),
        inert(&["--ignored-suffix"]).takes_text(),
        inert(&["--theme"]).takes_text(),
        inert(&["--theme-light"]).takes_text().elsewhere(),
        inert(&["--theme-dark"]).takes_text().elsewhere(),
        inert(&["--list-themes"]),
        inert(&["-s", "--squeeze-blank"]).elsewhere(),
        inert(&["--squeeze-limit"]).takes_number().elsewhere(),
        inert(&["--strip-ansi"]).takes(WHEN).elsewhere(),
        inert(&["--style"]).takes_text(),
        inert(&["-r", "--line-range"]).takes_text(),
        // Whatever `--paging` says, and where its output is no terminal too.
        runs(&["-L", "--list-languages"], "some versions show the list in a pager"),
        inert(&["-u", "--unbuffered"]),
        inert(&["--no-config"]),
        inert(&["--no-custom-assets"]),
        runs(&["--lessopen"], "runs the preprocessor that LESSOPEN names").elsewhere(),
        inert(&["--no-lessopen"]).elsewhere(),
        discloses(&["--config-file"], "shows where the user's configuration lies"),
        writes(&["--generate-config-file"], "writes a configuration file"),
        discloses(&["--config-dir"], "shows where the user's configuration lies"),
        discloses(&["--cache-dir"], "shows where the user's cache lies"),
        discloses(&["--diagnostic", "--diagnostics"], "shows the environment"),
        inert(&["--acknowledgements"]),
        inert(&["--set-terminal-title"]).elsewhere(),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    subcommands: CACHE,
    operands: Operands::FILES,
    conditions: Conditions::NONE.with(Condition::OutputNotTerminal).with(Condition::ReadsConfined),
    ..CommandSpec::JUDGED
};

const CACHE: &[CommandSpec] = &[CommandSpec::refused(&["cache"], "writes or removes the cache of syntaxes")];

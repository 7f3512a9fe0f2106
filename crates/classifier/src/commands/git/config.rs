//! `git config` and `git var`: read-only only where they show one value, or the repository's own values.
//!
//! A listing of everything shows the user's own configuration, where tokens stand in addresses and headers. One value
//! that is asked for by its name is shown wherever it stands.

use super::shared::{BASE, HELP, rows};
use crate::finding::Code;
use crate::spec::{
    CommandSpec, Flag, Operands, Role, Rule, ScriptIssue, Syntax, Tweak, discloses, inert, reads, runs,
    writes,
};

const LOCATION: &[Flag] = &[
    discloses(&["--global"], "shows the user's own configuration, which lies outside the project"),
    inert(&["--no-global"]),
    discloses(&["--system"], "shows the configuration of the machine, which lies outside the project"),
    inert(&["--no-system"]),
    inert(&["--local", "--worktree"]),
    inert(&["--no-local", "--no-worktree"]),
    reads(&["-f", "--file"], "reads this file as configuration"),
    inert(&["--no-file"]),
    inert(&["--blob"]).takes_text(),
    inert(&["--no-blob"]),
];

const DISPLAY: &[Flag] = &[
    inert(&["-z", "--null", "--no-null"]),
    inert(&["--name-only", "--no-name-only"]),
    inert(&["--show-origin", "--no-show-origin"]),
    inert(&["--show-scope", "--no-show-scope"]),
    inert(&["--show-names", "--no-show-names"]),
    inert(&["-t", "--type"]).takes_text(),
    inert(&["--no-type"]),
    inert(&["--bool", "--int", "--bool-or-int", "--bool-or-str", "--path", "--expiry-date"]),
    // Off is harmless; on lets a file that `--file` names include others.
    crate::spec::reads_listed(&["--includes"], "reads the files that the configuration includes")
        .takes_none(),
    inert(&["--no-includes"]),
    inert(&["--default"]).takes_text(),
    inert(&["--no-default"]),
];

/// The name of a value, which is no secret.
const NAME: Role = Role::Script(name);

fn name(text: &str) -> Result<(), ScriptIssue> {
    const SECRETS: &[&str] =
        &["token", "password", "passwd", "secret", "extraheader", "cookie", "oauth", "apikey", "api-key"];
    let lower = text.to_ascii_lowercase();
    if SECRETS.iter().any(|secret| lower.contains(secret)) {
        let why = "names what is usually a secret";
        return Err(ScriptIssue { code: Code::FlagDiscloses, ..ScriptIssue::new(0, text.len(), why) });
    }
    Ok(())
}

const SHOWS_EVERYTHING: Tweak = Tweak::Refuse(
    Code::FlagDiscloses,
    "shows the user's own configuration too; with `--local` or `--file` it shows the project's alone",
);

/// Where a listing is about the project alone.
const PROJECT_ONLY: &[&str] = &["--local", "--file", "--blob"];

pub(super) const SPEC: CommandSpec = CommandSpec {
    names: &["config"],
    about: "shows a configured value",
    // After the first operand even `--unset` is a value.
    syntax: Syntax::STOPS,
    flags: rows!(
        &[
            inert(&["--get", "--get-all", "--get-color", "--get-colorbool"]),
            inert(&["--get-urlmatch"]),
            inert(&["--get-regexp"]),
            inert(&["-l", "--list"]),
            writes(&["--replace-all", "--add"], "sets a value"),
            writes(&["--unset", "--unset-all"], "removes a value"),
            writes(&["--rename-section", "--remove-section"], "changes a section"),
            runs(&["-e", "--edit"], "opens an editor"),
            writes(&["--comment", "--no-comment"], "is about a value that is set").takes_text(),
            inert(&["--fixed-value", "--no-fixed-value"]),
        ],
        LOCATION,
        DISPLAY,
        HELP
    ),
    operands: Operands::at_most(&[NAME], "a second word is the value that is set, unless `--get` is given"),
    rules: &[
        Rule::When(
            &["--get", "--get-regexp", "--get-urlmatch"],
            Tweak::Layout(Operands::at_most(&[NAME, Role::Text], "takes a name and a pattern")),
        ),
        Rule::When(&["--list"], Tweak::Layout(Operands::at_most(&[], "takes no operand with `--list`"))),
        // For an address a section's name alone stands for everything in it, `http.*.extraHeader` included.
        Rule::WhenWithout(&["--list", "--get-regexp", "--get-urlmatch"], PROJECT_ONLY, SHOWS_EVERYTHING),
    ],
    subcommands: &[
        CommandSpec {
            names: &["list"],
            about: "lists the configuration",
            syntax: Syntax::STOPS,
            flags: rows!(LOCATION, DISPLAY, HELP),
            rules: &[Rule::Unless(PROJECT_ONLY, SHOWS_EVERYTHING)],
            ..BASE
        },
        CommandSpec {
            names: &["get"],
            about: "shows a configured value",
            syntax: Syntax::STOPS,
            flags: rows!(
                &[
                    inert(&["--all", "--no-all"]),
                    inert(&["--regexp"]),
                    inert(&["--no-regexp"]),
                    inert(&["--value"]).takes(Role::Pattern),
                    inert(&["--no-value"]),
                    inert(&["--fixed-value", "--no-fixed-value"]),
                    inert(&["--url"]).takes_text(),
                    inert(&["--no-url"]),
                ],
                LOCATION,
                DISPLAY,
                HELP
            ),
            operands: Operands::at_most(&[NAME], "takes one name"),
            rules: &[Rule::WhenWithout(&["--regexp", "--url"], PROJECT_ONLY, SHOWS_EVERYTHING)],
            ..BASE
        },
        CommandSpec::refused(&["set", "unset"], "changes a value"),
        CommandSpec::refused(&["rename-section", "remove-section"], "changes a section"),
        CommandSpec::refused(&["edit"], "opens an editor"),
    ],
    ..BASE
};

pub(super) const VAR: CommandSpec = CommandSpec {
    names: &["var"],
    about: "shows one of git's own variables",
    flags: rows!(&[discloses(&["-l"], "shows the user's own configuration too")], HELP),
    operands: Operands::at_most(&[Role::Text], "takes one name"),
    ..BASE
};

//! `git remote`, and `git ls-remote`, which asks one.

use super::shared::{BASE, HELP, HELP_LONG, rows};
use crate::finding::Code;
use crate::spec::{CommandSpec, Operands, Role, Rule, Tweak, inert, network};

pub(super) const SPEC: CommandSpec = CommandSpec {
    names: &["remote"],
    about: "lists remote repositories",
    flags: rows!(&[inert(&["-v", "--verbose", "--no-verbose"])], HELP),
    subcommands: &[
        CommandSpec {
            names: &["show"],
            about: "shows what is known of a remote repository",
            flags: rows!(&[inert(&["-n"])], HELP),
            operands: Operands::TEXTS,
            rules: &[Rule::Unless(
                &["-n"],
                Tweak::RefuseOperandsOver(
                    0,
                    Code::FlagNetwork,
                    "asks the remote repository, unless `-n` is given",
                ),
            )],
            ..BASE
        },
        CommandSpec {
            names: &["get-url"],
            about: "prints the address of a remote repository",
            flags: rows!(&[inert(&["--push", "--no-push"]), inert(&["--all", "--no-all"])], HELP),
            operands: Operands::TEXTS,
            ..BASE
        },
        CommandSpec::refused(&["add"], "configures a remote repository"),
        CommandSpec::refused(&["rename"], "renames a remote repository"),
        CommandSpec::refused(&["rm", "remove"], "removes a remote repository"),
        CommandSpec::refused(&["set-head"], "sets or asks for the default branch of a remote repository"),
        CommandSpec::refused(&["set-branches"], "configures what is fetched"),
        CommandSpec::refused(&["set-url"], "configures the address of a remote repository"),
        CommandSpec::refused(&["prune"], "asks the remote repository and removes refs"),
        CommandSpec::refused(&["update"], "fetches"),
    ],
    ..BASE
};

pub(super) const LS_REMOTE: CommandSpec = CommandSpec {
    names: &["ls-remote"],
    about: "lists the refs of another repository",
    flags: rows!(
        &[
            inert(&["-q", "--quiet", "--no-quiet"]),
            network(&["--upload-pack", "--exec"], "runs the program on the other side").takes(Role::Program),
            network(&["--no-upload-pack", "--no-exec"], "asks another repository"),
            inert(&["-t", "--tags", "--no-tags"]),
            inert(&["-b", "--branches", "--no-branches", "--heads", "--no-heads"]),
            network(&["-h"], "is `--heads` beside any other word"),
            inert(&["--refs", "--no-refs"]),
            inert(&["--get-url", "--no-get-url"]),
            inert(&["--sort"]).takes_text(),
            inert(&["--no-sort"]),
            inert(&["--exit-code", "--no-exit-code"]),
            inert(&["--symref", "--no-symref"]),
            network(&["-o", "--server-option"], "is sent to the other repository").takes_text(),
            network(&["--no-server-option"], "asks another repository"),
        ],
        HELP_LONG
    ),
    operands: Operands::TEXTS,
    rules: &[Rule::Unless(
        &[],
        Tweak::Refuse(Code::FlagNetwork, "asks another repository, over the network or outside the project"),
    )],
    ..BASE
};

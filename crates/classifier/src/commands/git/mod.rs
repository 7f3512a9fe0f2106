//! `git`
//!
//! Every judged subcommand needs [`Condition::GitHardened`](crate::Condition::GitHardened): git runs programs that the
//! repository's own configuration names, and what neutralises them is in [`crate::git_config`].

use crate::arg::Arg;
use crate::argv::{Reader, find};
use crate::condition::{Condition, Conditions};
use crate::finding::Code;
use crate::spec::{CommandSpec, Role, ScriptIssue, Syntax, discloses, inert, runs, unread};
use cmdgate_lexer::Grammar;

mod blame;
mod branch;
mod config;
mod diff;
mod files;
mod format;
mod grep;
mod log;
mod many;
mod plumbing;
mod refs;
mod refused;
mod remote;
mod shared;
mod status;

const JUDGED: &[CommandSpec] = &[
    blame::SPEC,
    many::BISECT,
    branch::BRANCH,
    many::BUNDLE,
    files::CAT_FILE,
    files::CHECK_ATTR,
    files::CHECK_IGNORE,
    plumbing::CHECK_MAILMAP,
    refs::CHECK_REF_FORMAT,
    log::CHERRY,
    plumbing::COLUMN,
    config::SPEC,
    plumbing::COUNT_OBJECTS,
    log::DESCRIBE,
    diff::DIFF_PORCELAIN,
    diff::DIFF_FILES,
    diff::DIFF_INDEX,
    diff::DIFF_TREE,
    refs::FOR_EACH_REF,
    files::FSCK,
    plumbing::GET_TAR_COMMIT_ID,
    grep::SPEC,
    files::HASH_OBJECT,
    plumbing::HELP_COMMAND,
    log::LOG,
    files::LS_FILES,
    remote::LS_REMOTE,
    files::LS_TREE,
    log::MERGE_BASE,
    log::NAME_REV,
    many::NOTES,
    plumbing::PATCH_ID,
    log::RANGE_DIFF,
    log::REFLOG,
    remote::SPEC,
    log::REV_LIST,
    refs::REV_PARSE,
    log::SHORTLOG,
    log::SHOW,
    log::SHOW_BRANCH,
    plumbing::SHOW_INDEX,
    refs::SHOW_REF,
    many::SPARSE_CHECKOUT,
    many::STASH,
    status::SPEC,
    plumbing::STRIPSPACE,
    many::SUBMODULE,
    refs::SYMBOLIC_REF,
    branch::TAG,
    config::VAR,
    files::VERIFY_PACK,
    plumbing::VERSION,
    log::WHATCHANGED,
    many::WORKTREE,
];

static SUBCOMMANDS: [CommandSpec; JUDGED.len() + refused::SPECS.len()] = chain();

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn chain<const N: usize>() -> [CommandSpec; N] {
    let mut all = [CommandSpec::UNREAD; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < JUDGED.len() { JUDGED[at] } else { refused::SPECS[at - JUDGED.len()] };
        at += 1;
    }
    all
}

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["git"],
    about: "looks into the history and the state of a repository",
    checked: "git 2.47.3",
    syntax: Syntax { bundles: false, double_dash: false, own: Some(read), ..Syntax::STOPS },
    flags: &[
        inert(&["-P", "--no-pager"]),
        inert(&["--no-optional-locks"]),
        inert(&["--no-lazy-fetch"]),
        inert(&["--no-replace-objects"]),
        inert(&["--no-advice"]),
        inert(&["--literal-pathspecs", "--no-literal-pathspecs"]),
        inert(&["--glob-pathspecs", "--noglob-pathspecs"]),
        inert(&["--icase-pathspecs"]),
        inert(&["-C"]).takes(Role::PathName),
        inert(&["-v", "--version"]).ends(),
        inert(&["-h"]).ends(),
        inert(&["--html-path", "--man-path", "--info-path"]).ends(),
        runs(&["--help"], "opens the manual page in a viewer"),
        runs(&["-p", "--paginate"], "starts a pager"),
        inert(&["-c"]).takes(Role::Script(setting)),
        runs(&["--config-env"], "sets configuration, which may name programs").takes_text(),
        runs(&["--exec-path"], "chooses where git's own programs are").may_take(Role::Text),
        runs(&["--git-dir"], "chooses another repository, whose configuration may name programs")
            .takes_text(),
        unread(&["--work-tree"], "chooses another working tree, which may lie anywhere").takes_text(),
        unread(&["--namespace"], "chooses other refs").takes_text(),
        unread(&["--super-prefix"], "is for git's own use").takes_text(),
        unread(&["--shallow-file"], "is for git's own use").takes_text(),
        unread(&["--bare"], "takes the directory for a repository, whose configuration may name programs"),
        unread(&["--attr-source"], "chooses other attributes").takes_text(),
        discloses(&["--list-cmds"], "lists commands and aliases").may_take(Role::Text),
    ],
    subcommands: &SUBCOMMANDS,
    // Even `git --version` writes trace files where the user's configuration says so.
    conditions: Conditions::NONE.with(Condition::GitHardened),
    ..CommandSpec::JUDGED
};

/// What `-c` may set: how the output looks, and that there is no pager. Every other key may name a program, or lift what
/// neutralises one.
fn setting(text: &str) -> Result<(), ScriptIssue> {
    let (key, value) = text.split_once('=').unwrap_or((text, "true"));
    let key = key.to_ascii_lowercase();
    let plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let harmless = match key.split_once('.') {
        Some(("core", "pager")) => value == "cat",
        Some(("pager", _)) => matches!(value, "cat" | "false"),
        Some(("core", "quotepath" | "abbrev")) | Some(("color" | "advice", _)) => plain,
        Some((
            "diff",
            "noprefix" | "mnemonicprefix" | "renames" | "context" | "colormoved" | "algorithm",
        )) => plain,
        Some(("log", "decorate" | "date" | "abbrevcommit" | "follow")) => plain,
        Some(("status", "short" | "branch" | "renames" | "showuntrackedfiles")) => plain,
        Some(_) | None => false,
    };
    if harmless {
        return Ok(());
    }
    let why = "sets configuration, which may name programs";
    Err(ScriptIssue { code: Code::FlagRuns, ..ScriptIssue::new(0, text.len(), why) })
}

/// Reads the options before the subcommand, of which `-C` changes the directory for all that follows, and then the
/// subcommand by its own table. Aliases do not matter: none can take the name of a command that git has.
fn read(reader: &mut Reader<'_, '_>) {
    let args = reader.args;
    let before = reader.judge.place();
    let mut at = 0;
    while let Some(words) = reader.flag_word(at) {
        if let (Some("-C"), Some(target)) = (args.get(at).and_then(Arg::literal), args.get(at + 1)) {
            reader.judge.change_to(target);
        }
        at += words;
    }
    if at > 0 && reader.judge.grammar() == Grammar::Pipeline {
        let why = "options before the subcommand are not admitted in the `pipeline` grammar";
        reader.report(Code::UnknownFlag, reader.name, None, why);
    }
    match args.get(at) {
        None if reader.ended() => {}
        None => reader.report(Code::UnknownSubcommand, reader.name, None, "needs a subcommand"),
        Some(extra) if reader.ended() => {
            let why = "opens the manual page, or is not read at all";
            reader.report(Code::TooManyOperands, extra.span, None, why);
        }
        Some(name) => subcommand(reader, name, args.get(at + 1..).unwrap_or(&[])),
    }
    reader.judge.return_to(before);
}

fn subcommand<'a>(reader: &mut Reader<'_, 'a>, name: &Arg<'a>, args: &[Arg<'a>]) {
    let Some(spec) = name.literal().and_then(|name| find(reader.spec.subcommands, name)) else {
        let why = "is not a subcommand in the table: it may be an alias or another program";
        reader.report(Code::UnknownSubcommand, name.span, None, why);
        return;
    };
    if spec.conditions.contains(Condition::GitHardened) {
        reader.judge.uses_repository();
    }
    let program = reader.program;
    let around = reader.around;
    reader.prints = Reader::new(reader.judge, spec, program, name.span, args, around).read();
}

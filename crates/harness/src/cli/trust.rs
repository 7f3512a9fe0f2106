//! `harness trust`: let a project's policy file loosen, in exactly the content that a person has seen.

use super::log::print;
use super::out::say;
use crate::config::{self, PROJECT_FILE, UserDirs};
use crate::exit::Exit;
use crate::present::{self, printable};
use crate::trust::{Before, TrustStore};
use cmdgate_policy::{Effect, Policy, PolicyFile};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

/// Trust a project's policy file, in exactly its present content, so that it may loosen and not only tighten
///
/// What changed since it was trusted before is shown, with what it loosens.
///
/// Exit status: 0 done, 1 not trusted before or not confirmed, 2 usage, 3 the file is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness trust\n  harness trust --list\n  harness trust --revoke")]
pub(crate) struct TrustArgs {
    /// The file [default: .cmdgate.toml of the enclosing repository]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show what is trusted
    #[arg(long, conflicts_with_all = ["revoke", "yes", "file"])]
    list: bool,
    /// Trust it no more
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
    /// Do not ask; for scripts whose author has read the file
    #[arg(long)]
    yes: bool,
}

pub(crate) fn trust(args: &TrustArgs) -> Exit {
    run(args).unwrap_or_else(|exit| exit)
}

fn run(args: &TrustArgs) -> Result<Exit, Exit> {
    let failed = |error| super::fail(Exit::Failed, error);
    let mut store = TrustStore::open(UserDirs::from_environment().state.as_deref()).map_err(failed)?;
    if args.list {
        let mut text = String::new();
        for entry in store.entries() {
            let now = config::policy_text(&entry.path);
            let state = match now {
                Ok(content) if store.is_trusted(&entry.path, content.as_bytes()) => "trusted",
                Ok(_) => "changed since, so it may only tighten",
                Err(error) if error.kind() == io::ErrorKind::NotFound => "gone",
                Err(_) => "no readable policy file any more",
            };
            let _ = writeln!(text, "{}  {}  {state}", entry.sha256, printable(&entry.path.to_string_lossy()));
        }
        return print(if text.is_empty() { "nothing is trusted\n" } else { &text });
    }
    let current = super::place::current()?;
    let path = args.file.as_ref().map_or_else(
        || super::place::enclosing_repository(&current).join(PROJECT_FILE),
        |file| super::place::absolute(&current, file),
    );
    // The file itself may be gone by now, or a link that is not followed.
    let path = match (path.parent().map(std::fs::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        (_, _) => path,
    };
    if args.revoke {
        return if store.revoke(&path).map_err(failed)? {
            print(&format!("{} may only tighten from now on\n", path.display()))
        } else {
            Err(super::fail(Exit::Unwell, format_args!("{} was not trusted", path.display())))
        };
    }
    let text = config::policy_text(&path).map_err(|error| {
        let none = error.kind() == io::ErrorKind::NotFound && args.file.is_none();
        let help = if none { "; `harness init` writes one" } else { "" };
        super::fail(Exit::Policy, format_args!("cannot read {}: {error}{help}", path.display()))
    })?;
    let file = PolicyFile::parse(&path.display().to_string(), &text).map_err(|errors| {
        say!("{}", crate::diagnose::policy_errors(&text, &errors));
        Exit::Policy
    })?;
    if store.is_trusted(&path, text.as_bytes()) {
        return print(&format!("{} is trusted in exactly this content\n", path.display()));
    }
    let (what, earlier) = match store.before(&path) {
        Some(Before::Content(before)) => {
            let earlier = PolicyFile::parse("before", before).map(loosens).unwrap_or_default();
            (format!("changed since you trusted it:\n{}", present::difference(before, &text)), Some(earlier))
        }
        Some(Before::NotKept) => {
            (format!("trusted before in another content, which was not kept; now:\n{}", listed(&text)), None)
        }
        None => (listed(&text), None),
    };
    let loosens = match (loosens(file), earlier) {
        (now, _) if now.is_empty() => "it loosens nothing".to_owned(),
        (now, None) => format!("it loosens:\n  {}", printable_lines(&now)),
        (now, Some(earlier)) => {
            let mark = |line: String| if earlier.contains(&line) { line } else { format!("{line}  (new)") };
            let marked: Vec<String> = now.into_iter().map(mark).collect();
            format!("it loosens:\n  {}", printable_lines(&marked))
        }
    };
    // A person who could not see it has nothing to say yes to.
    let shown = format!("{}\n{what}\n{loosens}\n", path.display());
    let mut out = io::stdout().lock();
    out.write_all(shown.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        super::fail(Exit::Failed, format_args!("not trusted: standard output cannot be written: {error}"))
    })?;
    drop(out);
    if !args.yes && !confirmed()? {
        return Err(super::fail(Exit::Unwell, "not trusted"));
    }
    // What was shown is what is trusted, whatever the file holds by now.
    store.trust(&path, text.as_bytes()).map_err(failed)?;
    print("trusted in exactly this content\n")
}

fn listed(text: &str) -> String {
    text.lines().map(|line| format!("  | {}", printable(line))).collect::<Vec<_>>().join("\n")
}

fn printable_lines(lines: &[String]) -> String {
    lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n  ")
}

fn confirmed() -> Result<bool, Exit> {
    if !io::stdin().is_terminal() {
        return Err(super::fail(
            Exit::Unwell,
            "not trusted: nobody is there to confirm it: pass --yes after reading the file",
        ));
    }
    let _ = anstream::stderr().write_all(b"Trust it? Type yes: ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| super::fail(Exit::Failed, error))?;
    Ok(answer.trim() == "yes")
}

/// What the file would do beyond tightening: its allows, and the settings that are looser than the built-in ones.
fn loosens(file: PolicyFile) -> Vec<String> {
    let built_in = Policy::default();
    let layers = file.into_layers("project");
    let mut lines = Vec::new();
    for layer in &layers {
        for rule in layer.all_rules().iter().filter(|rule| rule.effect == Effect::Allow) {
            lines.push(format!("allow {} `{}`", rule.act, rule.pattern.as_str()));
        }
        for act in cmdgate_policy::Act::ALL {
            if let Some(effect) = layer.defaults.get(act)
                && effect < built_in.default_effect(act).0
            {
                lines.push(format!("{act} is {effect} where no rule matches"));
            }
        }
    }
    let with = layers.into_iter().fold(built_in.clone(), Policy::with_layer).settings();
    lines
        .extend(with.looser_than(&built_in.settings()).into_iter().map(|name| format!("the setting {name}")));
    lines
}

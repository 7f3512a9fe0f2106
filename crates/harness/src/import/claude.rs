//! Claude Code: `permissions` of `settings.json`, as its documentation (code.claude.com/docs/en/permissions) has them.
//!
//! A command line is split at its operators; a deny or an ask holds for any part, an allow is needed for every part.
//! Which list a rule stands in is all that counts, so the combining rule is this program's own.

use super::json::Document;
use super::text::Wild;
use super::{Carried, Draft, ImportError, Place, SourceFile, command_rule, path, pattern_of};
use cmdgate_policy::{Act, Effect, Pattern, Rule};
use jsonc_parser::ast::Value;

/// Parameters of the shell tool, which a rule may name instead of a command.
const PARAMETERS: &[&str] =
    &["command", "description", "timeout", "run_in_background", "dangerouslyDisableSandbox"];
/// Programs that start others and that no rule with a wildcard covers.
const STARTERS: &[&str] = &["watch", "setsid", "ionice", "flock"];
/// Arguments of `find` that start programs or remove files; no rule with a wildcard covers them.
const FIND: &[&str] = &["*find*-exec*", "*find*-ok*", "*find*-delete*"];

const WRITES: &str = "Claude Code asks before output goes to a file that no rule lets it edit; here, unless a rule allows every edit";
/// Seen with 2.1.197.
const OPAQUE: &str =
    "Claude Code asks before `( … )`, `{ …; }`, `$name` and `$( … )`, whatever its rules allow";
const IONICE: &str = "Claude Code asks before `ionice`, whatever it starts";

pub(super) fn read(files: &[SourceFile], draft: &mut Draft) -> Result<(), ImportError> {
    // Whether a rule allows every edit.
    let mut edits = false;
    for file in files {
        let (document, settings) = Document::read(file)?;
        let Some(permissions) = document.object(&settings, "permissions")? else { continue };
        for (key, effect) in [("deny", Effect::Deny), ("ask", Effect::Ask), ("allow", Effect::Allow)] {
            for value in document.list(permissions, key)? {
                let text = document.text(value)?;
                let place = Place::new(file, document.line(text), format!("{key} {}", text.value));
                rule(&text.value, effect, &place, draft, &mut edits)?;
            }
        }
        for property in Document::others(permissions, &["allow", "ask", "deny"]) {
            let name = property.name.as_str();
            let place = Place::new(file, document.line(property), name);
            let why = match (name, &property.value) {
                ("defaultMode", Value::StringLit(mode)) if mode.value == "default" => continue,
                ("defaultMode", _) => "how much runs without a question is `approval` and `sandbox` here",
                ("additionalDirectories", _) => "name the folders in `read_roots` and `write_roots`",
                _ => "no setting here corresponds to it",
            };
            draft.leave(&place, why)?;
        }
    }
    draft.ask_with_syntax(&["ionice"], IONICE);
    draft.ask_with_syntax(&["expansion", "group"], OPAQUE);
    if !edits {
        draft.ask_with_syntax(&["output"], WRITES);
    }
    draft.imported.remarks.extend([
        "a command line is allowed when a rule allows every program in it; what is known to only read inside the \
         project is allowed as well, unless a rule denies it or asks",
        "`NAME=value` before a program is always asked about, unless the variable is known to be harmless",
    ]);
    Ok(())
}

fn rule(
    text: &str,
    effect: Effect,
    place: &Place<'_>,
    draft: &mut Draft,
    edits: &mut bool,
) -> Result<(), ImportError> {
    let text = text.trim();
    let (tool, specifier) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(specifier) => (tool.trim_end(), Some(specifier)),
            None => {
                return Err(ImportError::new(
                    place.file,
                    place.line,
                    format!("`{}` has no closing parenthesis", place.source),
                ));
            }
        },
    };
    if tool.is_empty() {
        return Err(ImportError::new(place.file, place.line, "a rule names a tool, like `Bash(npm test)`"));
    }
    match tool {
        "Bash" | "Monitor" => command(tool, specifier, effect, place, draft),
        "Read" | "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => {
            file(tool, specifier, effect, place, draft, edits)
        }
        "WebFetch" => match specifier.and_then(|specifier| specifier.strip_prefix("domain:")) {
            Some(domain) if effect != Effect::Allow => host(domain.trim(), effect, place, draft),
            Some(_) | None => draft.leave(
                place,
                "it is about fetching a page, which is no command; hosts that commands may reach stand in \
                 `network.allow_domains`",
            ),
        },
        // A pattern for tools of any kind.
        "*" if effect == Effect::Allow => {
            draft.leave(place, "it allows every tool there is; name the programs")
        }
        "*" => command("Bash", None, effect, place, draft),
        _ => draft.leave(place, "it is about another tool than commands and files"),
    }
}

fn command(
    tool: &str,
    specifier: Option<&str>,
    effect: Effect,
    place: &Place<'_>,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let wild = match specifier {
        None => Wild::parse("*", '*', None),
        Some(specifier) => {
            if let Some((name, _)) = specifier.split_once(':')
                && PARAMETERS.contains(&name)
            {
                let why = if name == "command" {
                    "Claude Code ignores it too; write the command alone"
                } else {
                    "rules see the command, not how the tool is called"
                };
                return draft.leave(place, why);
            }
            pattern(specifier)
        }
    };
    if effect != Effect::Allow {
        let why = "what the shell reads in its own way stands for anything here";
        return draft.tighten(effect, &wild, place, true, why);
    }
    if tool == "Monitor" {
        return draft.leave(place, "Monitor is governed by the rules for Bash");
    }
    if specifier.is_some_and(|specifier| specifier.trim().is_empty() || specifier.trim() == ":*") {
        return draft.leave(place, "it names no command");
    }
    if wild.is_everything() {
        let mut rules: Vec<_> = command_rule(effect, "*").into_iter().collect();
        for rule in &mut rules {
            rule.except = exceptions(&wild, None);
        }
        return draft.carry(place, Carried::Exactly, "", rules);
    }
    let program = wild.program().map(|program| program.rsplit('/').next().unwrap_or(program));
    if !wild.is_exact() && program.is_some_and(|program| STARTERS.contains(&program)) {
        return draft
            .leave(place, "Claude Code asks before a program that starts another, whatever a wildcard says");
    }
    let translated = wild.for_allowing();
    let rules = translated.and_then(|translated| {
        let rules = translated.patterns.iter().map(|pattern| command_rule(effect, pattern));
        Ok((rules.collect::<Result<Vec<_>, _>>()?, translated.exact))
    });
    match rules {
        Err(why) => draft.leave(place, &why),
        Ok((mut rules, exact)) => {
            for rule in &mut rules {
                rule.except = exceptions(&wild, program);
            }
            if exact {
                draft.carry(place, Carried::Exactly, "", rules)
            } else {
                let why = "without anything in place of the last wildcard it is asked about";
                draft.carry(place, Carried::Stricter, why, rules)
            }
        }
    }
}

/// The text of a rule for commands.
fn pattern(specifier: &str) -> Wild {
    if let Some(prefix) = specifier.strip_suffix(":*") {
        return Wild { bound: true, ..Wild::parse(prefix, '*', None) };
    }
    if let Some(prefix) = specifier.strip_suffix(" *")
        && !prefix.trim().is_empty()
    {
        return Wild { bound: true, ..Wild::parse(prefix, '*', None) };
    }
    Wild::parse(specifier, '*', None)
}

/// What a rule with a wildcard does not cover in Claude Code.
fn exceptions(wild: &Wild, program: Option<&str>) -> Vec<Pattern> {
    if wild.is_exact() || program.is_some_and(|program| program != "find") {
        return Vec::new();
    }
    let mut texts: Vec<String> = FIND.iter().map(ToString::to_string).collect();
    if program.is_none() {
        texts.extend(STARTERS.iter().flat_map(|name| [format!("{name} **"), format!("*/{name} **")]));
    }
    texts.iter().map(Pattern::lenient).collect()
}

fn host(domain: &str, effect: Effect, place: &Place<'_>, draft: &mut Draft) -> Result<(), ImportError> {
    let bare = domain.strip_prefix("*.").unwrap_or(domain);
    let rules = [bare.to_owned(), format!("*.{bare}")]
        .iter()
        .map(|text| Ok(Rule::with_pattern(Act::Net, effect, pattern_of(text)?)))
        .collect::<Result<Vec<_>, String>>();
    match rules {
        Ok(rules) if !bare.is_empty() => {
            draft.carry(place, Carried::Stricter, "it holds for commands, and for the hosts below", rules)
        }
        Ok(_) => draft.leave(place, "it names no host"),
        Err(why) => draft.leave(place, &why),
    }
}

fn file(
    tool: &str,
    specifier: Option<&str>,
    effect: Effect,
    place: &Place<'_>,
    draft: &mut Draft,
    edits: &mut bool,
) -> Result<(), ImportError> {
    let act = if tool == "Read" { Act::Read } else { Act::Write };
    let specifier = specifier.map(str::trim).filter(|specifier| !matches!(*specifier, "" | "*" | "**"));
    *edits |= act == Act::Write && effect == Effect::Allow && specifier.is_none();
    path::carry(specifier, act, effect, place, draft)
}

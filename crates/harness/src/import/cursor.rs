//! Cursor: `terminalAllowlist` of `permissions.json` (cursor.com/docs/reference/permissions), and `permissions` of
//! `cli-config.json` and `cli.json` (docs.cursor.com/en/cli/reference/permissions).
//!
//! The first lists beginnings of commands. In the second, `Shell(name)` is about the first word of a command, and a
//! deny beats an allow. Neither is documented to look through programs that run others, so those are asked about.

use super::json::Document;
use super::text::Wild;
use super::{Carried, Draft, ImportError, Place, SourceFile, WRAPPERS, command_rule, path};
use cmdgate_policy::{Act, Effect};
use jsonc_parser::ast::Value;

const ASKS: &str =
    "Cursor is not known to look through programs that run others, nor to cover where output goes";
const UNKNOWN: &str = "what it matches beyond a plain beginning is not documented";

pub(super) fn read(files: &[SourceFile], draft: &mut Draft) -> Result<(), ImportError> {
    let mut writes = false;
    for file in files {
        let (document, settings) = Document::read(file)?;
        document.no_other_deny(&settings, &[])?;
        for value in document.list(&settings, "terminalAllowlist")? {
            let text = document.text(value)?;
            let place = Place::new(file, document.line(text), format!("terminalAllowlist {}", text.value));
            beginning(&text.value, &place, draft)?;
        }
        if let Some(permissions) = document.object(&settings, "permissions")? {
            for (key, effect) in [("deny", Effect::Deny), ("allow", Effect::Allow)] {
                for value in document.list(permissions, key)? {
                    let text = document.text(value)?;
                    let place = Place::new(file, document.line(text), format!("{key} {}", text.value));
                    token(&text.value, effect, &place, draft, &mut writes)?;
                }
            }
            for other in Document::others(permissions, &["allow", "deny"]) {
                draft.leave(
                    &Place::new(file, document.line(other), other.name.as_str()),
                    "it is not known here",
                )?;
            }
        }
        if let Some(value) = document.get(&settings, "mcpAllowlist")? {
            draft
                .leave(&Place::new(file, document.line(value), "mcpAllowlist"), "it is about other tools")?;
        }
        if let Some(value) = document.get(&settings, "autoRun")? {
            let why = if matches!(value, Value::Object(_)) {
                "it is advice to a model, and no rule"
            } else {
                "how much runs without a question is `approval` and `sandbox` here"
            };
            draft.leave(&Place::new(file, document.line(value), "autoRun"), why)?;
        }
    }
    draft.ask_with_syntax(WRAPPERS, ASKS);
    if !writes {
        draft.ask_with_syntax(&["output"], ASKS);
    }
    Ok(())
}

fn beginning(text: &str, place: &Place<'_>, draft: &mut Draft) -> Result<(), ImportError> {
    if text.contains(['*', ':']) {
        return draft.leave(place, UNKNOWN);
    }
    draft.allow(&Wild::prefix(text), place)
}

fn token(
    text: &str,
    effect: Effect,
    place: &Place<'_>,
    draft: &mut Draft,
    writes: &mut bool,
) -> Result<(), ImportError> {
    let wrong = || {
        let what = format!("`{}` is not like `Shell(git)` or `Read(src/**)`", place.source);
        Err(ImportError::new(place.file, place.line, what))
    };
    let Some((tool, rest)) = text.trim().split_once('(') else { return wrong() };
    let Some(inside) = rest.strip_suffix(')').map(str::trim) else { return wrong() };
    let everything = matches!(inside, "" | "*" | "**");
    let tool = tool.trim();
    // Whether case counts is not documented.
    let tool = if effect != Effect::Allow && tool.eq_ignore_ascii_case("shell") { "Shell" } else { tool };
    match (tool, effect) {
        ("Shell", Effect::Allow) if inside == "*" || inside == "**" => {
            draft.carry(place, Carried::Exactly, "", command_rule(effect, "*").into_iter().collect())
        }
        ("Shell", Effect::Allow) if inside.contains(['*', '?', ':', ' ']) => draft.leave(place, UNKNOWN),
        ("Shell", Effect::Allow) => draft.allow(&Wild::prefix(inside), place),
        ("Shell", Effect::Ask | Effect::Deny) => {
            // `npm:install*`: of the arguments that it names, nothing is known.
            let name = inside.split(':').next().unwrap_or(inside);
            let wild =
                Wild { bound: true, ..Wild::parse(if everything { "*" } else { name }, '*', Some('?')) };
            draft.tighten(effect, &wild, place, name == inside, "it holds whatever the arguments are")
        }
        ("Read", _) => path::carry(Some(inside).filter(|_| !everything), Act::Read, effect, place, draft),
        ("Write", _) => {
            *writes |= effect == Effect::Allow && everything;
            path::carry(Some(inside).filter(|_| !everything), Act::Write, effect, place, draft)
        }
        ("", _) => wrong(),
        _ => draft.leave(place, "it is about another tool than commands and files"),
    }
}

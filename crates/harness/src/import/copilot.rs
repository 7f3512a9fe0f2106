//! Copilot CLI: the options `--allow-tool` and `--deny-tool`, as they stand in a script or an alias, or a JSON file with
//! lists of the same texts, or its saved `permissions-config.json`
//! (docs.github.com, "Allowing and denying tool use"). A deny beats an allow.
//!
//! `shell` is every command, `shell(git push)` this command, `shell(git:*)` everything that begins with it.

use super::json::Document;
use super::text::Wild;
use super::{Draft, ImportError, Place, SourceFile, WRAPPERS, path};
use cmdgate_policy::{Act, Effect};
use jsonc_parser::ast::Value;

const ASKS: &str =
    "Copilot is not known to look through programs that run others, nor to cover where output goes";
const NONE: &str = "there is no `--allow-tool` and no `--deny-tool` in it";

pub(super) fn read(files: &[SourceFile], draft: &mut Draft) -> Result<(), ImportError> {
    let mut writes = false;
    for file in files {
        if file.text.trim_start().starts_with('{') {
            saved(file, draft, &mut writes)?;
        } else {
            options(file, draft, &mut writes)?;
        }
    }
    draft.ask_with_syntax(WRAPPERS, ASKS);
    if !writes {
        draft.ask_with_syntax(&["output"], ASKS);
    }
    Ok(())
}

/// `copilot --allow-tool 'shell(git:*)' --deny-tool='shell(git push)'`
fn options(file: &SourceFile, draft: &mut Draft, writes: &mut bool) -> Result<(), ImportError> {
    let mut found = false;
    options_of(&file.text, (file, 0), draft, writes, &mut found)?;
    if found { Ok(()) } else { Err(ImportError::new(file, 1, NONE)) }
}

/// The options in a text that begins behind so many lines of its file.
fn options_of(
    text: &str,
    (file, before): (&SourceFile, usize),
    draft: &mut Draft,
    writes: &mut bool,
    found: &mut bool,
) -> Result<(), ImportError> {
    // With a blank before it, the reader has not passed the end of the line when a word ends there.
    let text = text.replace('\n', " \n").replace("\\ \n", "\\\n");
    let mut words = shlex::Shlex::new(&text);
    while let Some(word) = words.next() {
        // A word's line is where it begins; the reader knows where it ends.
        let line = before + words.line_no.saturating_sub(word.matches('\n').count()).max(1);
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word.clone(), None),
        };
        let effect = match option.as_str() {
            "--allow-tool" => Some(Effect::Allow),
            "--deny-tool" => Some(Effect::Deny),
            "--excluded-tools" | "--available-tools" => None,
            "--allow-all-tools" | "--allow-all" | "--yolo" => {
                let why = "it allows every tool there is; name the programs";
                draft.leave(&Place::new(file, line, option), why)?;
                *found = true;
                continue;
            }
            _ => {
                inside(&word, (file, line), draft, writes, found)?;
                continue;
            }
        };
        let Some(value) = value.or_else(|| words.next()) else {
            return Err(ImportError::new(file, line, format!("`{option}` has no value")));
        };
        *found = true;
        for tool in split_tools(&value) {
            let place = Place::new(file, line, format!("{option} {tool}"));
            let name = tool.split('(').next().unwrap_or(tool);
            if name.contains(['$', '`']) {
                let what =
                    format!("`{}` stands for tools that are not known here: write them out", place.source);
                return Err(ImportError::new(file, line, what));
            }
            match effect {
                Some(effect) => tool_rule(tool, effect, &place, draft, writes)?,
                None if option == "--excluded-tools" && matches!(tool, "shell" | "bash" | "powershell") => {
                    tool_rule("shell", Effect::Deny, &place, draft, writes)?;
                }
                None => draft.leave(&place, "which tools there are is no matter of rules for commands")?,
            }
        }
    }
    if words.had_error {
        return Err(ImportError::new(file, before + words.line_no, "a quote is not closed"));
    }
    Ok(())
}

/// A word that is no option may be a text with options, as in `alias c="copilot --deny-tool 'shell(rm)'"`.
fn inside(
    word: &str,
    (file, line): (&SourceFile, usize),
    draft: &mut Draft,
    writes: &mut bool,
    found: &mut bool,
) -> Result<(), ImportError> {
    if !["--allow-tool", "--deny-tool", "--excluded-tools"].iter().any(|option| word.contains(option)) {
        return Ok(());
    }
    if word.contains(char::is_whitespace) {
        return options_of(word, (file, line - 1), draft, writes, found);
    }
    let what = format!(
        "`{}` holds an option that is not written as one: write `copilot --deny-tool 'shell(git push)'`",
        super::one_line(word)
    );
    Err(ImportError::new(file, line, what))
}

/// The commas that stand outside of parentheses.
fn split_tools(list: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    list.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|tool| !tool.is_empty())
    .collect()
}

fn saved(file: &SourceFile, draft: &mut Draft, writes: &mut bool) -> Result<(), ImportError> {
    let (document, settings) = Document::read(file)?;
    let mut found = false;
    let lists = [
        (["allowTool", "allowTools", "allowedTools", "allow-tool", "allow_tools"], Effect::Allow),
        (["denyTool", "denyTools", "deniedTools", "deny-tool", "deny_tools"], Effect::Deny),
    ];
    let known: Vec<&str> = lists.iter().flat_map(|(keys, _)| *keys).collect();
    document.no_other_deny(&settings, &known)?;
    for (keys, effect) in lists {
        for key in keys {
            for value in document.list(&settings, key)? {
                found = true;
                let text = document.text(value)?;
                let place = Place::new(file, document.line(text), format!("{key} {}", text.value));
                tool_rule(text.value.trim(), effect, &place, draft, writes)?;
            }
        }
    }
    // What was approved for single directories.
    if let Some(locations) = document.object(&settings, "locations")? {
        for location in &locations.properties {
            let Value::Object(of) = &location.value else {
                return Err(document.wrong(location, "a location is an object"));
            };
            for value in document.list(of, "tool_approvals")? {
                found = true;
                let place =
                    Place::new(file, document.line(value), format!("approved in {}", location.name.as_str()));
                draft.leave(&place, "it was approved for one directory; approve it there once more")?;
            }
        }
    }
    if found {
        Ok(())
    } else {
        Err(ImportError::new(file, 1, "it lists no tools that are allowed or denied"))
    }
}

fn tool_rule(
    text: &str,
    effect: Effect,
    place: &Place<'_>,
    draft: &mut Draft,
    writes: &mut bool,
) -> Result<(), ImportError> {
    let (tool, inside) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => {
            let Some(inside) = rest.strip_suffix(')') else {
                let what = format!("`{}` has no closing parenthesis", place.source);
                return Err(ImportError::new(place.file, place.line, what));
            };
            (tool, Some(inside.trim()))
        }
    };
    let tool = tool.trim();
    // Whether case counts is not documented.
    let tool = if effect != Effect::Allow && tool.eq_ignore_ascii_case("shell") { "shell" } else { tool };
    match tool {
        "" => Err(ImportError::new(place.file, place.line, "it names no tool; write it like `shell(git:*)`")),
        "shell" => command(inside, effect, place, draft),
        "write" => {
            let inside = inside.filter(|inside| !matches!(*inside, "" | "*" | "**"));
            *writes |= effect == Effect::Allow && inside.is_none();
            path::carry(inside, Act::Write, effect, place, draft)
        }
        "read" => path::carry(inside, Act::Read, effect, place, draft),
        _ => draft.leave(place, "it is about another tool than commands and files"),
    }
}

fn command(
    inside: Option<&str>,
    effect: Effect,
    place: &Place<'_>,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let text = inside.unwrap_or("*");
    let wild = match (text, text.strip_suffix(":*")) {
        ("*", _) => Wild::parse("*", '*', None),
        (_, Some(prefix)) => Wild::prefix(prefix),
        // Allowed is only this very command; denied is also more of it.
        (text, None) if effect == Effect::Allow => Wild::exactly(text),
        (text, None) => Wild::prefix(text),
    };
    if effect == Effect::Allow {
        if text.is_empty() || text == ":*" || text != "*" && text.trim_end_matches(":*").contains('*') {
            return draft.leave(place, "what it matches beyond a plain beginning is not documented");
        }
        return draft.allow(&wild, place);
    }
    let wild = if text.trim_end_matches(":*").contains('*') {
        Wild { bound: true, ..Wild::parse(text.trim_end_matches(":*"), '*', None) }
    } else {
        wild
    };
    let is_exact = text == "*" || text.ends_with(":*");
    let why = "it holds whatever follows, and what the shell reads stands for anything";
    draft.tighten(effect, &wild, place, is_exact, why)
}

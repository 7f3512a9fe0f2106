//! Codex: `prefix_rule` of its `.rules` files (developers.openai.com/codex/exec-policy). The strictest rule that matches
//! counts.
//!
//! A rule matches commands whose words begin with its own, one by one; a list in place of a word is a choice. Codex looks
//! into a line of plain commands joined by `&&`, `||`, `;` and `|`; a line with anything else is one opaque command, and
//! is asked about here.

mod script;

use super::{Carried, Draft, ImportError, Place, SourceFile, command_rule};
use crate::syntax;
use cmdgate_policy::{Act, Effect, Pattern, Rule, escape};
use script::{Call, Given};
use std::collections::BTreeMap;
use std::path::Path;

const ASKS: &str = "Codex looks into plain commands only, and asks about a line with any other syntax";

pub(super) fn read(files: &[SourceFile], draft: &mut Draft) -> Result<(), ImportError> {
    let mut calls = Vec::new();
    for file in files {
        for call in script::read(&file.text).map_err(|(line, what)| ImportError::new(file, line, what))? {
            calls.push((file, call));
        }
    }
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, call) in &calls {
        if call.function == "host_executable" {
            let wrong = |what: &str| ImportError::new(file, call.line, format!("host_executable: {what}"));
            call.only(&["name", "paths"]).map_err(|what| wrong(&what))?;
            let name = call.text("name").map_err(&wrong)?.ok_or_else(|| wrong("`name` is missing"))?;
            let listed = call.texts("paths").map_err(&wrong)?.ok_or_else(|| wrong("`paths` is missing"))?;
            let end = format!("/{name}");
            if name.is_empty()
                || name.contains('/')
                || !listed.iter().all(|path| path.starts_with('/') && path.ends_with(&end))
            {
                return Err(wrong("`paths` are absolute paths that end in `name`, and that is no path"));
            }
            // The last one counts.
            paths.insert(name.to_owned(), listed);
        }
    }
    for (file, call) in &calls {
        match call.function.as_str() {
            "prefix_rule" => prefix_rule(file, call, &paths, draft)?,
            "network_rule" => network_rule(file, call, draft)?,
            _ => {
                let place = Place::new(file, call.line, call.shown());
                draft
                    .leave(&place, "a program is allowed by its name alone, and denied by any path to it")?;
            }
        }
    }
    let names: Vec<&str> = syntax::NAMES.iter().map(|(name, _)| *name).collect();
    draft.ask_with_syntax(&names, ASKS);
    draft
        .imported
        .remarks
        .push("Codex runs what a rule allows outside of its sandbox; here it stays in yours");
    Ok(())
}

/// The words of a rule: at each place, the choices.
type Words = Vec<Vec<String>>;

fn prefix_rule(
    file: &SourceFile,
    call: &Call,
    paths: &BTreeMap<String, Vec<String>>,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let wrong = |what: &str| ImportError::new(file, call.line, format!("prefix_rule: {what}"));
    call.only(&["pattern", "decision", "justification", "match", "not_match"])
        .map_err(|what| wrong(&what))?;
    let words = words(call).map_err(wrong)?;
    let effect = decision(call).map_err(&wrong)?;
    let justification = justification(call).map_err(&wrong)?;
    let place = Place::new(file, call.line, call.shown());
    let mut shown = Vec::new();
    for (key, expected) in [("match", true), ("not_match", false)] {
        for example in call.examples(key).map_err(|what| wrong(&what))? {
            if matches(&words, &example, paths) != expected {
                let what = if expected { "is to match, and does not" } else { "is not to match, and does" };
                return Err(wrong(&format!("its example `{}` {what}", super::one_line(&example.join(" ")))));
            }
            if expected {
                shown.push(example.join(" "));
            }
        }
    }
    let carried = if effect == Effect::Allow { allowing(&words) } else { Ok(tightening(&words)) };
    let (mut rule, exact) = match carried {
        Ok(made) => made,
        Err(why) => return draft.leave(&place, &why),
    };
    rule.effect = effect;
    if effect == Effect::Allow {
        rule.words = true;
    }
    rule.reason = justification.map(ToOwned::to_owned);
    shown.retain(|example| rule.matches(example));
    rule.matches = shown;
    if exact {
        draft.carry(&place, Carried::Exactly, "", vec![rule])
    } else {
        draft.carry(&place, Carried::Stricter, "it holds for more words than it names", vec![rule])
    }
}

fn words(call: &Call) -> Result<Words, &'static str> {
    const WRONG: &str = "`pattern` is a list of words, or of lists of words to choose from";
    let Some(Given::List(items)) = call.get("pattern") else { return Err(WRONG) };
    let mut words = Words::new();
    for item in items {
        words.push(match item {
            Given::Text(word) => vec![word.clone()],
            Given::List(choices) if !choices.is_empty() => {
                let texts: Option<Vec<String>> =
                    choices.iter().map(|choice| choice.as_text().map(ToOwned::to_owned)).collect();
                texts.ok_or(WRONG)?
            }
            Given::List(_) | Given::Tuple(_) | Given::Flag(_) | Given::Nothing => return Err(WRONG),
        });
    }
    if words.is_empty() { Err(WRONG) } else { Ok(words) }
}

fn decision(call: &Call) -> Result<Effect, &'static str> {
    match call.text("decision")? {
        None | Some("allow") => Ok(Effect::Allow),
        Some("prompt") => Ok(Effect::Ask),
        Some("forbidden") => Ok(Effect::Deny),
        // What the other functions call it.
        Some("deny") if call.function == "network_rule" => Ok(Effect::Deny),
        Some(_) => Err("`decision` is not one of allow, prompt, forbidden"),
    }
}

fn justification(call: &Call) -> Result<Option<&str>, &'static str> {
    match call.text("justification")? {
        Some(text) if text.trim().is_empty() => Err("`justification` is empty"),
        text => Ok(text),
    }
}

/// Whether a command begins with the words. A program may be named by a path, any where `host_executable` lists none for
/// its name.
fn matches(words: &Words, command: &[String], paths: &BTreeMap<String, Vec<String>>) -> bool {
    let begins = |command: &[String]| {
        command.len() >= words.len()
            && words.iter().zip(command).all(|(choices, word)| choices.contains(word))
    };
    if begins(command) {
        return true;
    }
    let Some((program, arguments)) = command.split_first() else { return false };
    let Some(name) = Path::new(program).file_name().and_then(|name| name.to_str()) else { return false };
    let known = paths.get(name).is_none_or(|listed| listed.contains(program));
    known && begins(&[&[name.to_owned()], arguments].concat())
}

/// The rule for exactly these words and all that follows them.
fn allowing(words: &Words) -> Result<(Rule, bool), String> {
    for word in words.iter().flatten() {
        if word.is_empty() || word.contains(' ') || word.contains('\u{1f}') {
            return Err("a word that is empty or holds a space cannot be written in a pattern".to_owned());
        }
    }
    Ok((command_rule(Effect::Allow, &pattern(words))?, true))
}

/// A rule for at least these words; with fewer of them, where all are too many.
fn tightening(words: &Words) -> (Rule, bool) {
    let exact = !words.iter().flatten().any(|word| word.is_empty() || word.contains(char::is_whitespace));
    for end in (1..=words.len()).rev() {
        let some: Words = words.iter().take(end).cloned().collect();
        if let Ok(rule) = command_rule(Effect::Deny, &pattern(&some)) {
            return (rule, exact && end == words.len());
        }
    }
    (Rule::with_pattern(Act::Exec, Effect::Deny, Pattern::lenient("*")), false)
}

fn pattern(words: &Words) -> String {
    let plain = |word: &String| escape(word).replace(',', "\\,").replace('}', "\\}");
    let choices = |choices: &Vec<String>| match choices.as_slice() {
        [word] => plain(word),
        many => format!("{{{}}}", many.iter().map(plain).collect::<Vec<_>>().join(",")),
    };
    words.iter().map(choices).collect::<Vec<_>>().join(" ") + " **"
}

fn network_rule(file: &SourceFile, call: &Call, draft: &mut Draft) -> Result<(), ImportError> {
    let wrong = |what: &str| ImportError::new(file, call.line, format!("network_rule: {what}"));
    call.only(&["host", "protocol", "decision", "justification"]).map_err(|what| wrong(&what))?;
    let host = call.text("host").map_err(&wrong)?.ok_or_else(|| wrong("`host` is missing"))?;
    let effect = decision(call).map_err(&wrong)?;
    let protocol = call.text("protocol").map_err(&wrong)?.ok_or_else(|| wrong("`protocol` is missing"))?;
    if !matches!(protocol, "http" | "https" | "socks5_tcp" | "socks5_udp") {
        return Err(wrong("`protocol` is none of http, https, socks5_tcp, socks5_udp"));
    }
    if host.contains('*') {
        return Err(wrong("`host` is a single host"));
    }
    justification(call).map_err(&wrong)?;
    let place = Place::new(file, call.line, call.shown());
    if effect == Effect::Allow {
        return draft
            .leave(&place, "name the host in `network.allow_domains`; protocols are not told apart here");
    }
    // A port is no part of a name.
    let host = host.trim().to_ascii_lowercase();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) | None => host.as_str(),
    };
    match Pattern::new(escape(host.trim_end_matches('.'))) {
        Ok(pattern) => {
            let rule = Rule::with_pattern(Act::Net, effect, pattern);
            draft.carry(&place, Carried::Stricter, "it holds for every protocol", vec![rule])
        }
        Err(error) => Err(wrong(&error.to_string())),
    }
}

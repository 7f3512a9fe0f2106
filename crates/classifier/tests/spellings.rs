//! Every row of every table, in every spelling that its program accepts.
//!
//! The tables are walked as data, so a new row is tested by being there. What a row does must not depend on how it is
//! written: separate, attached, bundled, with `=`, before or after operands, quoted. And no row may make a worse
//! command better, unless a declared rule says so.

#![expect(clippy::string_slice, reason = "the names of flags begin with an ASCII dash")]

use cmdgate_classifier::commands::ALL;
use cmdgate_classifier::spec::{CommandSpec, Flag, FlagEffect, Role, Rule, Stance, Tweak, Value};
use cmdgate_classifier::{Code, Context, Grammar, Verdict, classify};
use std::collections::BTreeSet;

const ROOT: &str = "/home/user/project";
const OUTSIDE: &str = "/etc/passwd";

/// A table with the words that lead to it.
struct Table {
    path: Vec<&'static str>,
    spec: &'static CommandSpec,
}

/// All tables that judge rows, subcommands included.
fn tables() -> Vec<Table> {
    fn walk(path: &[&'static str], spec: &'static CommandSpec, tables: &mut Vec<Table>) {
        if matches!(spec.stance, Stance::Refused(_)) {
            return;
        }
        // All names of a program or subcommand share its rows.
        let mut path = path.to_vec();
        path.push(spec.name());
        tables.push(Table { path: path.clone(), spec });
        for sub in spec.subcommands {
            walk(&path, sub, tables);
        }
    }
    let mut tables = Vec::new();
    for spec in ALL {
        walk(&[], spec, &mut tables);
    }
    tables
}

/// A value that the role admits.
fn sample(role: Role) -> Option<String> {
    Some(match role {
        Role::Text | Role::Pattern | Role::PathName | Role::ProgramName => "x".to_owned(),
        Role::Number => "1".to_owned(),
        Role::ReadPath | Role::PathList | Role::WritePath | Role::Program | Role::Host => "a.txt".to_owned(),
        Role::NamedPath(check) => ["a.txt", "a.tar"].into_iter().find(|name| check(name).is_ok())?.to_owned(),
        Role::Command => "true".to_owned(),
        Role::OneOf(words) | Role::ListOf(words) => words.iter().find(|word| !word.is_empty())?.to_string(),
        Role::Revision => "HEAD".to_owned(),
        Role::Script(check) | Role::ScriptPart(check) => ["x", "p", ".", "1", "{print}", "%h", "+%Y", "1,2"]
            .into_iter()
            .find(|text| check(text).is_ok())?
            .to_owned(),
    })
}

/// Operands with which the table's command is complete.
fn operands(table: &Table) -> Vec<String> {
    let spec = table.spec;
    match table.path.as_slice() {
        ["xargs"] => return vec!["echo".to_owned()],
        ["find"] | ["git"] => return Vec::new(),
        _ => {}
    }
    let layout = spec.operands;
    let mut words: Vec<String> = layout.leading.iter().filter_map(|role| sample(*role)).collect();
    words.extend(layout.rest.and_then(sample));
    words
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What the classifier answers: the verdict, and each code with the row that gave it.
type Answer = (bool, BTreeSet<(Code, Option<&'static str>)>);

fn ask(command: &str) -> Answer {
    let context = Context::new(Grammar::Sequence).with_root(ROOT);
    let judged = classify(command, &context);
    let reasons = judged.findings.iter().map(|found| (found.code, found.row.and_then(|row| row.flag)));
    (judged.verdict() == Verdict::Safe, reasons.collect())
}

/// A command line of quoted words, fed by a pipe so that standard input never matters.
fn line(table: &Table, flag: &[String], operands: &[String], after: bool) -> String {
    let quoted: Vec<String> = operands.iter().map(|word| quote(word)).collect();
    let path: Vec<String> = table.path.iter().map(|word| (*word).to_owned()).collect();
    let words = if after { [path.as_slice(), &quoted, flag] } else { [path.as_slice(), flag, &quoted] };
    format!("cat a.txt | {}", words.concat().join(" "))
}

/// Whether the name is one letter after one dash.
fn is_short(name: &str) -> bool {
    name.chars().count() == 2 && !name.starts_with("--")
}

/// Ways to write the flag with this value; each is a list of words as the shell source has them.
fn spellings(table: &Table, flag: &Flag, value: Option<&str>) -> Vec<Vec<String>> {
    let syntax = table.spec.syntax;
    let bundles = syntax.bundles && !syntax.single_dash_words;
    // A flag without value or effect to bundle with.
    let companion = table.spec.flags.iter().find(|other| {
        let idle = other.effect == FlagEffect::Inert && matches!(other.value, Value::None) && !other.ends;
        let ruled = table
            .spec
            .rules
            .iter()
            .any(|rule| rule_names(rule).iter().any(|name| other.names.contains(name)));
        idle && !ruled
            && other.conditions.is_empty()
            && other.names.iter().any(|name| is_short(name))
            && !core::ptr::eq(*other, flag)
            && !other.names.iter().any(|name| name.chars().nth(1).is_some_and(|c| !c.is_ascii_alphabetic()))
    });
    let letter =
        companion.and_then(|other| other.names.iter().find(|name| is_short(name)).map(|name| &name[1..]));
    let mut all = Vec::new();
    // A name that an earlier row of the table takes (`git blame -n`) is not this row's.
    let own = |name: &&&str| table.spec.flag(name).is_some_and(|(_, found)| core::ptr::eq(found, flag));
    for name in flag.names.iter().filter(own) {
        let short = is_short(name);
        match (flag.value, value) {
            (Value::None | Value::Optional(_), None) => {
                all.push(vec![quote(name)]);
                if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                    all.push(vec![(*name).to_owned()]);
                    all.push(vec![format!("-''{}", &name[1..])]);
                }
                all.push(vec![format!("\"-\"{}", quote(&name[1..]))]);
                if short
                    && bundles
                    && let Some(letter) = letter
                {
                    all.push(vec![quote(&format!("-{letter}{}", &name[1..]))]);
                    if matches!(flag.value, Value::None) {
                        all.push(vec![quote(&format!("{name}{letter}"))]);
                    }
                }
            }
            (Value::Required(_), Some(value)) => {
                all.push(vec![quote(name), quote(value)]);
                all.push(vec![format!("-''{}", quote(&name[1..])), format!("''{}", quote(value))]);
                if short && bundles {
                    all.push(vec![quote(&format!("{name}{value}"))]);
                    if let Some(letter) = letter {
                        all.push(vec![quote(&format!("-{letter}{name}", name = &name[1..])), quote(value)]);
                        all.push(vec![quote(&format!("-{letter}{}{value}", &name[1..]))]);
                    }
                } else if name.starts_with("--") && syntax.long {
                    all.push(vec![quote(&format!("{name}={value}"))]);
                    all.push(vec![format!("{}={}", quote(name), quote(value))]);
                }
            }
            (Value::Optional(_), Some(value)) => {
                if short && bundles {
                    all.push(vec![quote(&format!("{name}{value}"))]);
                } else if name.starts_with("--") && syntax.long {
                    all.push(vec![quote(&format!("{name}={value}"))]);
                }
            }
            (Value::Words(count, _), Some(value)) => {
                let mut words = vec![quote(name)];
                words.extend((0..count).map(|_| quote(value)));
                all.push(words);
            }
            (Value::Required(_) | Value::Words(..), None) | (Value::None, Some(_)) => {}
        }
    }
    all
}

/// Whether flags may stand after operands. A reader of its own may do otherwise, and a first word without dash is a
/// bundle where that exists.
fn after_operands(spec: &CommandSpec) -> bool {
    spec.syntax.permutes
        && !spec.syntax.bare_bundle
        && spec.syntax.own.is_none()
        && spec.subcommands.is_empty()
}

fn rule_names(rule: &Rule) -> Vec<&'static str> {
    match rule {
        Rule::When(names, _) | Rule::Unless(names, _) => names.to_vec(),
        Rule::WhenWithout(with, without, _) => with.iter().chain(*without).copied().collect(),
    }
}

fn role_of(flag: &Flag) -> Option<Role> {
    match flag.value {
        Value::None => None,
        Value::Required(role) | Value::Optional(role) | Value::Words(_, role) => Some(role),
    }
}

/// The values to try with a flag: none where it may stand alone, one that its role admits, and one that it does not.
fn values(flag: &Flag) -> Vec<(Option<String>, bool)> {
    let mut values = Vec::new();
    if matches!(flag.value, Value::None | Value::Optional(_)) {
        values.push((None, false));
    }
    if let Some(role) = role_of(flag) {
        values.extend(sample(role).map(|value| (Some(value), false)));
        let bad = match role {
            Role::ReadPath | Role::NamedPath(_) | Role::PathList | Role::WritePath => Some(OUTSIDE),
            Role::Number => Some("../x"),
            Role::OneOf(_) | Role::ListOf(_) => Some("not-a-word-of-it"),
            Role::Revision => Some("../../x"),
            Role::Text
            | Role::Pattern
            | Role::PathName
            | Role::ProgramName
            | Role::Program
            | Role::Command
            | Role::Host
            | Role::Script(_)
            | Role::ScriptPart(_) => None,
        };
        values.extend(bad.map(|value| (Some(value.to_owned()), true)));
    }
    values
}

#[test]
fn every_spelling_of_a_row_gives_one_answer() {
    // contract: S10
    let mut failures = Vec::new();
    let (mut rows, mut asked) = (0, 0);
    for table in tables() {
        let operands = operands(&table);
        for flag in table.spec.flags {
            rows += 1;
            for (value, is_bad) in values(flag) {
                let mut first: Option<(String, Answer)> = None;
                for words in spellings(&table, flag, value.as_deref()) {
                    let places: &[bool] = if after_operands(table.spec) { &[false, true] } else { &[false] };
                    for after in places {
                        let command = line(&table, &words, &operands, *after);
                        let answer = ask(&command);
                        asked += 1;
                        if is_bad && answer.0 {
                            failures.push(format!("safe with a value that its role refuses: {command}"));
                        }
                        if let Some(code) = flag.effect.code()
                            && flag.conditions.is_empty()
                            && (answer.0 || !answer.1.iter().any(|(found, _)| *found == code))
                        {
                            failures
                                .push(format!("does not report {}: {command}: {answer:?}", code.as_str()));
                        }
                        match &first {
                            None => first = Some((command, answer)),
                            Some((other, expected)) if *expected != answer => {
                                failures
                                    .push(format!("{other}\n    {expected:?}\n  {command}\n    {answer:?}"));
                            }
                            Some(_) => {}
                        }
                    }
                }
            }
        }
    }
    assert!(rows > 1_000 && asked > 10_000, "{rows} rows in {asked} spellings are too few to prove anything");
    failures.truncate(40);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whether a declared rule lets this flag change which operands are admitted, or what is refused.
fn is_a_mode(spec: &CommandSpec, flag: &Flag) -> bool {
    let touches = |rule: &Rule| rule_names(rule).iter().any(|name| flag.names.contains(name));
    let changes = |rule: &Rule| {
        let (Rule::When(_, tweak) | Rule::Unless(_, tweak) | Rule::WhenWithout(_, _, tweak)) = rule;
        match tweak {
            Tweak::DropLeading
            | Tweak::Layout(_)
            | Tweak::Refuse(..)
            | Tweak::RefuseOperandsOver(..)
            | Tweak::RefuseOperandsUnder(..) => true,
            Tweak::NeverStdin | Tweak::AlwaysStdin | Tweak::Needs(_) | Tweak::Prints(_) => false,
        }
    };
    spec.rules.iter().any(|rule| touches(rule) && changes(rule))
}

/// The flag in its first spelling, with a value that it admits.
fn written(table: &Table, flag: &Flag) -> Option<Vec<String>> {
    let value = role_of(flag).and_then(sample);
    let optional = matches!(flag.value, Value::Optional(_));
    spellings(table, flag, if optional { None } else { value.as_deref() }).into_iter().next()
}

#[test]
fn no_row_takes_the_harm_of_another_away() {
    // contract: S12
    let mut failures = Vec::new();
    let mut asked = 0;
    for table in tables() {
        let operands = operands(&table);
        let bad: Vec<&Flag> = table
            .spec
            .flags
            .iter()
            .filter(|flag| flag.effect.code().is_some() && flag.conditions.is_empty())
            .collect();
        for harmful in bad {
            let Some(harm) = written(&table, harmful) else {
                continue;
            };
            for flag in table.spec.flags {
                let Some(words) = written(&table, flag) else {
                    continue;
                };
                let mut pairs = vec![[harm.clone(), words.clone()]];
                // A builtin looks at `--help` before anything else, and its own reader knows that.
                if !(flag.ends && table.spec.syntax.own.is_some()) {
                    pairs.push([words, harm.clone()]);
                }
                for pair in pairs {
                    let command = line(&table, &pair.concat(), &operands, false);
                    asked += 1;
                    if ask(&command).0 {
                        failures.push(command);
                    }
                }
            }
        }
    }
    assert!(asked > 10_000, "{asked} commands are too few to prove anything");
    failures.truncate(40);
    assert!(failures.is_empty(), "called safe:\n{}", failures.join("\n"));
}

#[test]
fn no_row_admits_a_path_outside() {
    // contract: S9
    let mut failures = Vec::new();
    let mut asked = 0;
    for table in tables() {
        let layout = table.spec.operands;
        let Some(Role::ReadPath) = layout.rest.or(layout.leading.last().copied()) else {
            continue;
        };
        let mut operands: Vec<String> = operands(&table);
        if layout.rest.is_none() {
            operands.pop();
        }
        operands.push(OUTSIDE.to_owned());
        let alone = ask(&line(&table, &[], &operands, false));
        assert!(!alone.0, "{} {OUTSIDE}", table.path.join(" "));
        for flag in table.spec.flags {
            // A rule may turn the operands into something else: patterns, commands, names that are not opened.
            if is_a_mode(table.spec, flag) {
                continue;
            }
            if let Some(words) = written(&table, flag) {
                let command = line(&table, &words, &operands, false);
                asked += 1;
                if ask(&command).0 {
                    failures.push(command);
                }
            }
        }
    }
    assert!(asked > 500, "{asked} commands are too few to prove anything");
    failures.truncate(40);
    assert!(failures.is_empty(), "called safe:\n{}", failures.join("\n"));
}

#[test]
fn what_is_held_back_alone_is_held_back_with_a_row_that_is_no_mode() {
    // contract: S12
    let mut failures = Vec::new();
    for table in tables() {
        let operands = operands(&table);
        if ask(&line(&table, &[], &operands, false)).0 {
            continue;
        }
        for flag in table.spec.flags {
            if flag.ends || is_a_mode(table.spec, flag) {
                continue;
            }
            if let Some(words) = written(&table, flag) {
                let command = line(&table, &words, &operands, false);
                if ask(&command).0 {
                    failures.push(command);
                }
            }
        }
    }
    failures.truncate(40);
    assert!(failures.is_empty(), "called safe:\n{}", failures.join("\n"));
}

#[test]
fn a_bundle_without_dash_is_the_same_as_one_with_it() {
    // contract: S10
    let mut compared = 0;
    for table in tables().iter().filter(|table| table.spec.syntax.bare_bundle) {
        let shorts = table.spec.flags.iter().filter(|flag| flag.names.iter().any(|name| is_short(name)));
        for flag in shorts {
            let name = flag.names.iter().find(|name| is_short(name)).unwrap();
            let operands = operands(table);
            let mut words = vec![name[1..].to_owned()];
            if matches!(flag.value, Value::Required(_)) {
                words.extend(role_of(flag).and_then(sample));
            }
            let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
            let mut dashed = quoted.clone();
            dashed[0] = quote(name);
            let bare = ask(&line(table, &quoted, &operands, false));
            let with_dash = ask(&line(table, &dashed, &operands, false));
            assert_eq!(bare, with_dash, "{} {words:?}", table.path.join(" "));
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}

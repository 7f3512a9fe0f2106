//! The case files in `cases/`: a command line, and the words or the refusal that it must give.
//!
//! ```text
//! ## a comment
//! git log "a b" *.rs
//! => git log "a b" <* ".rs">
//! ---
//! ```
//!
//! Every simple command gives a line, in the order in which they end, those of substitutions before the command around
//! them. Words stand as they are when they are plain, else as Rust strings; words that are not known stand as their
//! parts in angle brackets. A refusal is `error`, its kind, and the text that decided. The cases of `pipeline.case` are
//! read in that grammar, all others in `sequence`. The words are also checked against bash, by the whole-product tests.
// contract: S5, S6, S7, X4, X5

#![expect(
    clippy::unwrap_used,
    clippy::needless_for_each,
    reason = "helpers of a test; loops over an option or inside an arm read better in one line"
)]

use cmdgate_lexer::{
    Command, CompoundKind, Glob, Grammar, List, Part, Redirect, RedirectKind, Segment, Word, WordValue, lex,
};
use std::fmt::Write;
use std::path::Path;

fn plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=,:+@%".contains(&byte))
}

fn word(word: &Word<'_>) -> String {
    match &word.value {
        WordValue::Literal(text) if plain(text) => text.to_string(),
        WordValue::Literal(text) => format!("{text:?}"),
        WordValue::Composite(parts) => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            format!("<{}>", parts.join(" "))
        }
    }
}

fn part(part: &Part<'_>) -> String {
    let quote = |quoted: bool, text: String| if quoted { format!("\"{text}\"") } else { text };
    match part {
        Part::Text(text) => format!("{text:?}"),
        Part::Glob(Glob::Any) => "*".into(),
        Part::Glob(Glob::One) => "?".into(),
        Part::Glob(Glob::Class(class)) => (*class).into(),
        Part::Tilde(user) => format!("~{user}"),
        Part::Variable { name, quoted } => quote(*quoted, format!("${name}")),
        Part::Substitution { pipe: true, .. } => "<(…)".into(),
        Part::Substitution { quoted, .. } => quote(*quoted, "$(…)".into()),
        Part::Arithmetic { text, quoted } => quote(*quoted, format!("$(({text}))")),
    }
}

fn redirect(redirect: &Redirect<'_>) -> String {
    let fd = redirect.fd.map_or(String::new(), |fd| fd.to_string());
    match &redirect.kind {
        RedirectKind::Read(target) => format!("{fd}<{}", word(target)),
        RedirectKind::Write { target, append: false } => format!("{fd}>{}", word(target)),
        RedirectKind::Write { target, append: true } => format!("{fd}>>{}", word(target)),
        RedirectKind::WriteBoth { target, append: false } => format!("&>{}", word(target)),
        RedirectKind::WriteBoth { target, append: true } => format!("&>>{}", word(target)),
        RedirectKind::ReadWrite(target) => format!("{fd}<>{}", word(target)),
        RedirectKind::Duplicate(number) => format!("{fd}>&{number}"),
        RedirectKind::Close => format!("{fd}>&-"),
        RedirectKind::HereDocument { body, quoted } => {
            format!("{fd}<<{}{}", if *quoted { "'" } else { "" }, word(body))
        }
        RedirectKind::HereString(text) => format!("{fd}<<<{}", word(text)),
    }
}

fn inside(word: &Word<'_>, lines: &mut String) {
    for part in word.parts() {
        if let Part::Substitution { list, .. } = part {
            commands(list, lines);
        }
    }
}

fn segment(segment: &Segment<'_>, lines: &mut String) {
    let mut texts = Vec::new();
    for assignment in &segment.assignments {
        inside(&assignment.value, lines);
        let operator = if assignment.append { "+=" } else { "=" };
        texts.push(format!("{}{operator}{}", assignment.name, word(&assignment.value)));
    }
    for one in &segment.words {
        inside(one, lines);
        texts.push(word(one));
    }
    for one in &segment.redirects {
        if let RedirectKind::HereDocument { body, .. } = &one.kind {
            inside(body, lines);
        }
        texts.push(redirect(one));
    }
    writeln!(lines, "=> {}", texts.join(" ")).unwrap();
}

fn commands(list: &List<'_>, lines: &mut String) {
    for stage in list.items.iter().flat_map(|item| &item.pipeline.stages) {
        match stage {
            Command::Simple(one) => segment(one, lines),
            Command::Compound(compound) => {
                let mut texts = vec![match &compound.kind {
                    CompoundKind::Subshell(list) => {
                        commands(list, lines);
                        "( )".to_string()
                    }
                    CompoundKind::Group(list) => {
                        commands(list, lines);
                        "{ }".to_string()
                    }
                    CompoundKind::For { name, words, body, .. } => {
                        commands(body, lines);
                        let words: Vec<String> = words.iter().map(word).collect();
                        format!("for {name} in {}", words.join(" "))
                    }
                    CompoundKind::While { until, condition, body } => {
                        commands(condition, lines);
                        commands(body, lines);
                        if *until { "until" } else { "while" }.to_string()
                    }
                    CompoundKind::If { branches, otherwise } => {
                        for (condition, body) in branches {
                            commands(condition, lines);
                            commands(body, lines);
                        }
                        otherwise.iter().for_each(|body| commands(body, lines));
                        "if".to_string()
                    }
                    CompoundKind::Case { word: subject, arms } => {
                        let mut texts = vec![format!("case {} in", word(subject))];
                        for (patterns, body) in arms {
                            body.iter().for_each(|body| commands(body, lines));
                            let patterns: Vec<String> = patterns.iter().map(word).collect();
                            texts.push(patterns.join("|"));
                        }
                        texts.join(" ")
                    }
                    CompoundKind::Arithmetic(text) => format!("(({text}))"),
                    CompoundKind::Conditional(words) => {
                        words.iter().for_each(|one| inside(one, lines));
                        let words: Vec<String> = words.iter().map(word).collect();
                        format!("[[ {} ]]", words.join(" "))
                    }
                }];
                texts.extend(compound.redirects.iter().map(redirect));
                writeln!(lines, "=> {}", texts.join(" ")).unwrap();
            }
        }
    }
}

fn read(source: &str, grammar: Grammar) -> String {
    match lex(source, grammar) {
        Ok(script) => {
            let mut lines = String::new();
            commands(&script.list, &mut lines);
            lines
        }
        Err(error) => format!("=> error {} {:?}\n", error.kind.as_str(), error.span.of(source)),
    }
}

#[test]
fn every_case_is_read_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let grammar = if path.ends_with("pipeline.case") { Grammar::Pipeline } else { Grammar::Sequence };
        let text = std::fs::read_to_string(&path).unwrap();
        let mut updated = String::new();
        for case in text.split_inclusive("\n---\n") {
            let start =
                case.lines().take_while(|line| line.starts_with("## ")).map(|line| line.len() + 1).sum();
            let (comment, case) = case.split_at(start);
            let (command, expected) =
                case.split_once("\n=> ").unwrap_or_else(|| panic!("{}: {case}", path.display()));
            let expected = format!("=> {}", expected.trim_end_matches("---\n"));
            let found = read(command, grammar);
            writeln!(updated, "{comment}{command}\n{found}---").unwrap();
            count += 1;
            if found != expected {
                wrong.push(format!("{}:\n{command}\nexpected\n{expected}found\n{found}", path.display()));
            }
        }
        // Expectations are written by hand; this writes down what is, to be read line by line before it is kept.
        if std::env::var_os("CMDGATE_REWRITE_CASES").is_some() {
            std::fs::write(&path, updated).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 200, "only {count} cases were found");
}

//! Explanations for a person: the text with the deciding characters underlined.

use crate::advice;
use crate::gate::{Action, Decision, Request};
use crate::present::printable;
use crate::session::Session;
use crate::wire::row_name;
use crate::words;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use cmdgate_classifier::{Finding, Verdict};
use cmdgate_policy::{Effect, PolicyErrors};
use std::ops::Range;

/// With colours. The caller prints through `anstream`, which takes them out again where they do not belong: into a pipe or a
/// file, under `NO_COLOR`, at a terminal that has none.
const fn renderer() -> Renderer {
    Renderer::styled()
}

/// A span that is certain to fit the text: clamped, on character boundaries, and not empty where it can be avoided.
fn fitting(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text.ceil_char_boundary(range.end.clamp(start, text.len()));
    if start == end { start..text.ceil_char_boundary((end + 1).min(text.len())) } else { start..end }
}

/// [`decision`] without colours, to be kept.
pub fn plain_decision(request: &Request, decision: &Decision) -> String {
    explain(request, decision, &[], &Renderer::plain())
}

/// Why a request was decided as it was, with the deciding characters underlined.
pub fn decision(request: &Request, decision: &Decision) -> String {
    explain(request, decision, &[], &renderer())
}

/// The same for whoever may change the policy and the flags: with what would make it pass.
pub fn decision_with_advice(session: &Session, request: &Request, decision: &Decision) -> String {
    let mut lines = Vec::new();
    if decision.effect != Effect::Allow {
        let found = advice::of(session.gate(), request, decision);
        lines.extend(found.iter().map(advice::Advice::line));
        lines.extend(advice::untrusted(session));
    }
    explain(request, decision, &lines, &renderer())
}

fn explain(request: &Request, decision: &Decision, advised: &[String], renderer: &Renderer) -> String {
    let text = request.action.text();
    let (level, title) = match decision.effect {
        Effect::Allow => (Level::NOTE, "allowed"),
        Effect::Ask => (Level::WARNING, "needs an approval"),
        Effect::Deny => (Level::ERROR, "denied"),
    };
    let code = decision.code.map_or("allow", crate::gate::DecisionCode::as_str);
    let mut snippet = Snippet::source(text.as_ref()).path(origin_of(&request.action)).fold(false);
    for (at, finding) in decision.findings.iter().enumerate() {
        let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let range = fitting(&text, finding.span.range());
        snippet = snippet.annotation(kind.span(range).label(label(finding)));
    }
    let title = format!("{title}: {}", decision.reason);
    let mut group = Group::with_title(level.primary_title(title).id(code)).element(snippet);
    group = group.element(Level::NOTE.message(format!(
        "decided by {} of layer {}",
        match decision.rule() {
            Some(rule) => format!("rule `{rule}`"),
            None => decision.source.as_str().to_owned(),
        },
        decision.layer()
    )));
    let line = words::of(&request.action);
    if line != text {
        // What is underlined are the words side by side; where one of them ends does not show there.
        group = group.element(Level::NOTE.message(format!("word by word: {}", printable(&line))));
    }
    for line in help(decision).into_iter().chain(advised.iter().cloned()) {
        group = group.element(Level::HELP.message(line));
    }
    renderer.render(&[group])
}

fn origin_of(action: &Action) -> &'static str {
    match action {
        Action::Shell(_) => "command",
        Action::Exec(_) => "argv",
        Action::Read(_) | Action::Write(_) => "path",
    }
}

fn label(finding: &Finding) -> String {
    let row = finding.row.map_or_else(String::new, |row| format!(" (table row `{}`)", row_name(row)));
    format!("{}: {}{row}", finding.code.as_str(), finding.message)
}

/// What the findings mean, or under which conditions it passes.
fn help(decision: &Decision) -> Vec<String> {
    let mut lines = Vec::new();
    match decision.effect {
        Effect::Allow => {
            if decision.verdict == Some(Verdict::Safe) && !decision.conditions.is_empty() {
                let names: Vec<&str> =
                    decision.conditions.iter().map(|condition| condition.as_str()).collect();
                lines.push(format!(
                    "the verdict holds under: {}, which the executor provides",
                    names.join(", ")
                ));
            }
        }
        Effect::Ask | Effect::Deny => {
            if let Some(rule) = decision.ruling.as_ref().and_then(|ruling| ruling.rule.as_ref()) {
                if let Some(file) = &rule.file {
                    let line = rule.line.map_or_else(String::new, |line| format!(":{line}"));
                    lines.push(format!("the rule stands in {}{line}", file.display()));
                }
            } else {
                lines.extend(advice::why_no_rule(decision));
            }
            if let Some(finding) = decision.findings.first() {
                lines.push(format!("{}: {}", finding.code.as_str(), finding.code.meaning().trim()));
            }
        }
    }
    lines
}

/// What is wrong in a policy file, each with its place.
pub fn policy_errors(text: &str, errors: &PolicyErrors) -> String {
    let mut groups = Vec::new();
    for error in errors.iter() {
        let name = error.source_name().unwrap_or("policy").to_owned();
        let title = Level::ERROR.primary_title(error.message());
        let mut group = match error.span() {
            Some(span) => Group::with_title(title).element(
                Snippet::source(text)
                    .path(name)
                    .annotation(AnnotationKind::Primary.span(fitting(text, span)).label("here")),
            ),
            None => Group::with_title(title).element(Origin::path(name)),
        };
        if let Some(help) = error.help() {
            group = group.element(Level::HELP.message(help));
        }
        groups.push(group);
    }
    renderer().render(&groups)
}

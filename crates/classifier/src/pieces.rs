//! Scripts in small languages that are given as arguments, whole or in pieces.

use crate::arg::Arg;
use crate::argv::Reader;
use crate::spec::ScriptIssue;
use alloc::string::String;
use alloc::vec::Vec;
use cmdgate_lexer::Span;

/// A script that is given in pieces.
pub(crate) struct Script<'a> {
    pub(crate) check: fn(&str) -> Result<(), ScriptIssue>,
    pub(crate) pieces: Vec<Arg<'a>>,
}

impl<'a> Reader<'_, 'a> {
    /// Reports what is wrong with a script.
    pub(crate) fn report_script(&mut self, arg: &Arg<'a>, issue: &ScriptIssue, flag: Option<&'static str>) {
        let span = script_span(self.judge.source_at(arg.span), arg, issue);
        self.report(issue.code, span, flag, issue.why);
    }

    /// Checks a script that was given in pieces.
    pub(crate) fn check_script(&mut self) {
        let Some(script) = self.script.take() else {
            return;
        };
        let mut text = String::new();
        for (at, piece) in script.pieces.iter().enumerate() {
            let Some(literal) = piece.literal() else {
                return;
            };
            if at > 0 {
                text.push('\n');
            }
            text.push_str(literal);
        }
        let Err(issue) = (script.check)(&text) else {
            return;
        };
        let mut start = 0;
        let mut span = self.name;
        for piece in &script.pieces {
            let end = start + piece.text.len();
            if issue.start <= end {
                let within = ScriptIssue {
                    start: issue.start.saturating_sub(start),
                    end: issue.end.min(end).saturating_sub(start),
                    ..issue
                };
                span = script_span(self.judge.source_at(piece.span), piece, &within);
                break;
            }
            start = end + 1;
        }
        self.report(issue.code, span, None, issue.why);
    }
}

/// The span of an issue inside a script argument: exact when the argument is its own source text, with or without a
/// pair of quotes around it; else the whole argument.
fn script_span(source: Option<&str>, arg: &Arg<'_>, issue: &ScriptIssue) -> Span {
    let text = arg.text.as_ref();
    let before = match source {
        Some(source) if source == text => 0,
        Some(source) if source.get(1..source.len().saturating_sub(1)) == Some(text) => 1,
        Some(_) => return arg.span,
        // Arguments without a command line: their spans are those of their texts.
        None => 0,
    };
    let at = |offset: usize| {
        u32::try_from(offset).unwrap_or(0).saturating_add(arg.span.start).saturating_add(before)
    };
    let start = text.floor_char_boundary(issue.start);
    Span::new(at(start), at(text.ceil_char_boundary(issue.end.max(start))))
}

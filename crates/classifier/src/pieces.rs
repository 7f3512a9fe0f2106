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
        self.report(issue.code, script_span(arg, issue), flag, issue.why);
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
                span = script_span(piece, &within);
                break;
            }
            start = end + 1;
        }
        self.report(issue.code, span, None, issue.why);
    }
}

/// The span of an issue inside a script argument: exact when the argument is its own source text, with or without a
/// pair of quotes around it; else the whole argument.
pub(crate) fn script_span(arg: &Arg<'_>, issue: &ScriptIssue) -> Span {
    let extra = arg.span.len().saturating_sub(arg.text.len());
    let before = match extra {
        0 => 0,
        2 => 1,
        _ => return arg.span,
    };
    let at = |offset: usize| {
        u32::try_from(offset.min(arg.text.len()))
            .unwrap_or(0)
            .saturating_add(arg.span.start)
            .saturating_add(before)
    };
    Span::new(at(issue.start), at(issue.end.max(issue.start)))
}

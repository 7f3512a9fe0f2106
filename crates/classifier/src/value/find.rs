//! The words of `find`: options, start points, and an expression of predicates that each take a fixed number of words.
//!
//! Which predicate takes what stands in the table; here is only how the words follow each other. An argument of a
//! predicate is never a predicate, whatever it looks like: `find . -name -delete` looks for a name.

use crate::arg::{Arg, Shape};
use crate::argv::{Reader, Surroundings, Tail};
use crate::condition::Condition;
use crate::finding::Code;
use crate::script::push_literal;
use crate::spec::{Flag, Prints, Role, ScriptIssue, Value};
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use cmdgate_lexer::Span;

/// The commands of `-exec` are judged for each start point, up to this many.
const MOST_STARTS: usize = 16;

/// Reads the words after `find`.
pub(crate) fn read(reader: &mut Reader<'_, '_>) {
    if reader.around.tail != Tail::None {
        let why = "words are appended to this command that may become predicates which are not harmless";
        reader.report(Code::MayBeFlag, reader.name, None, why);
        return;
    }
    let mut walk = Walk { reader, starts: Vec::new(), expression: false, at: 0, output: Output::Default };
    while walk.word() {}
    let output = walk.output;
    reader.prints = match output {
        Output::Default | Output::Names => Prints::PathsInside,
        Output::Other => Prints::Anything,
    };
}

/// A date, as `-newermt` takes it. `TZ="…"` at its beginning makes the C library open a file.
pub(crate) fn date(text: &str) -> Result<(), ScriptIssue> {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '+' | ':' | '.' | ',' | '/' | '@');
    if text.chars().all(plain) {
        return Ok(());
    }
    Err(ScriptIssue::new(0, text.len(), "is a date with characters that could name a time zone file"))
}

/// What is printed, as far as it matters to `xargs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// No action has been seen, so names are printed.
    Default,
    /// Names of files that were found.
    Names,
    Other,
}

struct Walk<'w, 'j, 'a> {
    reader: &'w mut Reader<'j, 'a>,
    starts: Vec<&'j Arg<'a>>,
    /// Whether a predicate has been seen: start points come before it.
    expression: bool,
    at: usize,
    output: Output,
}

impl<'j, 'a> Walk<'_, 'j, 'a> {
    /// Reads one word and what belongs to it; false at the end.
    fn word(&mut self) -> bool {
        let args = self.reader.args;
        let Some(arg) = args.get(self.at) else {
            return false;
        };
        self.at += 1;
        let Some(text) = arg.literal() else {
            if self.expression || arg.may_begin_with('-') || arg.text.starts_with(['!', '(', ')', ',']) {
                let why = "its text is not known, and it might become a predicate that is not harmless";
                self.reader.report(Code::MayBeFlag, arg.span, None, why);
            } else {
                self.start(arg);
            }
            return true;
        };
        match text {
            "!" | "(" => self.expression = true,
            ")" | "," if self.expression => {}
            "--" if !self.expression => {}
            _ if text.len() > 1 && text.starts_with('-') => self.predicate(text, arg),
            _ if self.expression => {
                self.reader.report(Code::BadValue, arg.span, None, "is neither a predicate nor its argument");
            }
            _ => self.start(arg),
        }
        true
    }

    fn start(&mut self, arg: &'j Arg<'a>) {
        self.reader.judge.read_path(arg);
        self.starts.push(arg);
    }

    fn predicate(&mut self, text: &str, arg: &'j Arg<'a>) {
        let optimises =
            text.strip_prefix("-O").is_some_and(|level| level.bytes().all(|b| b.is_ascii_digit()));
        if optimises && !self.expression {
            return;
        }
        let leading = matches!(text, "-H" | "-L" | "-P" | "-D" | "-E" | "-X" | "-d" | "-s" | "-x");
        self.expression |= !leading;
        let Some((_, flag)) = self.reader.spec.flag(text) else {
            self.newer_or_unknown(text, arg);
            return;
        };
        if let Some(code) = flag.effect.code() {
            self.reader.report(code, arg.span, Some(flag.name()), flag.why);
        }
        self.reader.judge.need(flag.conditions);
        match text {
            "-print" | "-print0" => self.prints(Output::Names),
            "-printf" | "-ls" => self.prints(Output::Other),
            _ => {}
        }
        match flag.value {
            Value::None | Value::Optional(_) => {}
            Value::Required(Role::Command) => self.command(flag, arg.span),
            Value::Required(role) => self.argument(flag, role, arg.span),
            Value::Words(count, role) => {
                for _ in 0..count {
                    self.argument(flag, role, arg.span);
                }
            }
        }
    }

    /// `-newerXY`: what X and Y are decides whether a file or a date follows.
    fn newer_or_unknown(&mut self, text: &str, arg: &'j Arg<'a>) {
        let kinds = text.strip_prefix("-newer").map(str::as_bytes);
        let role = match kinds {
            Some([b'a' | b'B' | b'c' | b'm', b't']) => Role::Script(date),
            Some([b'a' | b'B' | b'c' | b'm', b'a' | b'B' | b'c' | b'm']) => Role::ReadPath,
            Some(_) | None => {
                self.reader.report(Code::UnknownFlag, arg.span, None, "is not in the table of predicates");
                return;
            }
        };
        if let Some((_, flag)) = self.reader.spec.flag("-newer") {
            self.argument(flag, role, arg.span);
        }
    }

    fn prints(&mut self, output: Output) {
        if self.output != Output::Other {
            self.output = output;
        }
    }

    /// One argument of a predicate.
    fn argument(&mut self, flag: &'static Flag, role: Role, predicate: Span) {
        let args = self.reader.args;
        let Some(arg) = args.get(self.at) else {
            self.reader.report(Code::MissingValue, predicate, Some(flag.name()), "needs a value");
            return;
        };
        self.at += 1;
        // An unquoted pattern may become several words. All but the first then stand where a predicate should, and no
        // predicate has a `.` or `/` in it, so that `find` stops with an error before it does anything.
        let never_predicate = || {
            matches!(arg.shape, Shape::Pattern { .. })
                && arg.text.contains(['.', '/'])
                && !arg.text.contains('[')
        };
        if arg.is_many() && !never_predicate() {
            let why = "may become several words, which might be predicates that are not harmless";
            self.reader.report(Code::MayBeFlag, arg.span, Some(flag.name()), why);
        }
        if matches!(role, Role::ReadPath) {
            // Unlike a program's operand, `-` is a file here.
            self.reader.judge.read_path(arg);
        } else {
            self.reader.value(role, arg, Some(flag.name()));
        }
    }

    /// `-exec COMMAND ;` and `-exec COMMAND {} +`
    fn command(&mut self, flag: &'static Flag, predicate: Span) {
        let args = self.reader.args;
        let words = args.get(self.at..).unwrap_or(&[]);
        let mut braces = false;
        let mut end = None;
        for (at, arg) in words.iter().enumerate() {
            let Some(text) = arg.literal() else {
                let why = "its text is not known, so that where the command ends is not";
                self.reader.report(Code::MayAddOperands, arg.span, Some(flag.name()), why);
                self.at = args.len();
                return;
            };
            if text == ";" || (text == "+" && braces) {
                end = Some((at, text == "+"));
                break;
            }
            braces = text.contains("{}");
        }
        let Some((end, many)) = end.filter(|(end, _)| *end > 0) else {
            let why = "needs a command that ends with `;` or `{} +`";
            self.reader.report(Code::MissingValue, predicate, Some(flag.name()), why);
            self.at = args.len();
            return;
        };
        self.at += end + 1;
        let command = words.get(..end).unwrap_or(&[]);
        if self.starts.len() > MOST_STARTS {
            let why = "has more start points than a command is judged for";
            self.reader.report(Code::TooLarge, predicate, Some(flag.name()), why);
            return;
        }
        if let Some(program) = command.first().filter(|program| program.literal() == Some("sleep")) {
            let why = "would wait anew for every file that is found";
            self.reader.report(Code::Endless, program.span, Some(flag.name()), why);
        }
        let here = Arg::exact(".", predicate);
        let mut starts = self.starts.clone();
        if starts.is_empty() {
            starts.push(&here);
        }
        let around = Surroundings {
            input_ends: self.reader.around.input_ends,
            upstream: Prints::Anything,
            tail: Tail::None,
            depth: self.reader.around.depth + 1,
        };
        self.reader.judge.need_one(Condition::ReadsConfined);
        for start in starts {
            let found: Vec<Arg<'a>> = command.iter().map(|arg| name_found(arg, start, many)).collect();
            match self.reader.judge.command(&found, around) {
                Prints::PathsInside => self.prints(Output::Names),
                Prints::Anything | Prints::LinesOfInput => self.prints(Output::Other),
            }
        }
    }
}

/// What the word of a command becomes when `{}` in it is replaced by the name of a file found below `start`: a name that
/// begins as the start point does.
fn name_found<'a>(arg: &Arg<'a>, start: &Arg<'_>, many: bool) -> Arg<'a> {
    let Some(at) = arg.text.find("{}") else {
        return arg.clone();
    };
    let prefix = match start.shape {
        Shape::Exact => start.text.len(),
        Shape::Pattern { prefix, .. } => prefix,
        Shape::Pipe | Shape::Opaque { .. } => 0,
    };
    if arg.text == "{}" {
        let mut text = String::new();
        push_literal(&mut text, &start.text, matches!(start.shape, Shape::Exact));
        let prefix = if matches!(start.shape, Shape::Exact) { text.len() } else { prefix };
        text.push_str("/*");
        return Arg { text: Cow::Owned(text), span: arg.span, shape: Shape::Pattern { prefix, many } };
    }
    let mut text = arg.text.get(..at).unwrap_or("").to_string();
    text.push_str(start.text.get(..prefix).unwrap_or(""));
    Arg { text: Cow::Owned(text), span: arg.span, shape: Shape::Opaque { splits: false } }
}

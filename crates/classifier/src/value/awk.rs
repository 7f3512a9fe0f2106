//! awk programs: a closed language of expressions, `print`, and loops that end.
//!
//! Which awk will run the program is not known (gawk, mawk, the one of Kernighan, busybox), so that whatever two of them
//! split into different tokens is held back. Nothing is admitted that runs a command, opens a file, or sees the
//! environment: no `system`, no pipe, no redirection, no `getline`, no `@`, no user-defined function.

use crate::finding::Code;
use crate::spec::ScriptIssue;
use alloc::vec::Vec;

/// What the functions that only compute are called.
const FUNCTIONS: &[&str] = &[
    "length", "substr", "index", "split", "sub", "gsub", "match", "sprintf", "sin", "cos", "atan2", "exp",
    "log", "sqrt", "int", "rand", "srand", "tolower", "toupper", "gensub", "strftime", "systime", "mktime",
    "strtonum", "asort", "asorti", "patsplit", "and", "or", "xor", "lshift", "rshift", "compl", "typeof",
    "isarray",
];

/// An open parenthesis after `if`, `for` or `while`, in the list of open brackets.
const HEADER: u8 = b'h';

const KEYWORDS: &[&str] = &[
    "BEGIN",
    "END",
    "BEGINFILE",
    "ENDFILE",
    "if",
    "else",
    "for",
    "in",
    "next",
    "nextfile",
    "exit",
    "delete",
    "print",
    "printf",
    "while",
    "do",
    "break",
    "continue",
    "return",
];

/// The largest number that may stand in a program with counting loops, and how deep such loops may be nested: what
/// takes longer is the business of a time limit.
const MOST_ROUNDS: u32 = 10_000_000;
const MOST_NESTED: usize = 3;
/// Statements nested deeper than this are not followed.
const MOST_DEPTH: usize = 64;

/// What was learned of an admitted program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    /// Whether it has rules other than `BEGIN`, so that it reads its input.
    pub(crate) reads_input: bool,
}

/// Checks a program.
pub(crate) fn check(program: &str) -> Result<Program, ScriptIssue> {
    let tokens =
        Scanner { text: program, at: 0, tokens: Vec::new(), open: Vec::new(), print: None }.scan()?;
    let walk = Walk { tokens: &tokens };
    walk.loops()?;
    Ok(Program { reads_input: walk.reads_input() })
}

/// Checks `name=value` after `-v`.
pub(crate) fn assignment(text: &str) -> Result<(), ScriptIssue> {
    match text.split_once('=') {
        Some((name, _)) if is_name(name) && special(name).is_none() => Ok(()),
        Some(_) | None => Err(ScriptIssue {
            code: Code::BadValue,
            ..ScriptIssue::new(0, text.len(), "is not the assignment of a plain variable")
        }),
    }
}

/// Whether an operand assigns a variable, which is then not a file.
pub(crate) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Why a name is not admitted; none when it is a variable like any other.
fn special(name: &str) -> Option<&'static str> {
    Some(match name {
        "system" => "runs a command",
        "getline" => "reads another file, a command, or waits for input",
        "close" | "fflush" => "belongs to files and pipes, which are not admitted",
        "function" | "func" => "defines a function, which may call itself for ever",
        "ENVIRON" => "shows the environment",
        "PROCINFO" | "SYMTAB" | "FUNCTAB" => "shows or changes what belongs to the interpreter",
        "ARGV" | "ARGC" => "changes or shows which files are read",
        "OFMT" | "CONVFMT" => "is a format that the C library is given unchecked",
        "LINT" | "BINMODE" | "TEXTDOMAIN" | "ERRNO" | "_" => "is a variable of one awk alone",
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Regex,
    /// A variable, or a function of the list that is used without parentheses (`length`).
    Name,
    /// A function of the list, followed by `(`.
    Function,
    Keyword,
    Operator,
    Newline,
}

#[derive(Debug, Clone, Copy)]
struct Token<'s> {
    kind: Kind,
    text: &'s str,
    start: usize,
    /// Whether an operand ends here, so that `/` is a division.
    operand: bool,
}

impl Token<'_> {
    fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, Kind::Operator | Kind::Keyword)
    }

    fn issue<T>(&self, why: &'static str) -> Result<T, ScriptIssue> {
        Err(ScriptIssue::new(self.start, self.start + self.text.len(), why))
    }

    fn endless<T>(&self) -> Result<T, ScriptIssue> {
        let issue =
            ScriptIssue::new(self.start, self.start + self.text.len(), "nothing shows that this loop ends");
        Err(ScriptIssue { code: Code::Endless, ..issue })
    }

    fn assigns(&self) -> bool {
        self.kind == Kind::Operator
            && matches!(self.text, "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "^=" | "**=" | "++" | "--")
    }
}

struct Scanner<'s> {
    text: &'s str,
    at: usize,
    tokens: Vec<Token<'s>>,
    /// Open brackets.
    open: Vec<u8>,
    /// How many brackets were open at the `print` or `printf` that is being read.
    print: Option<usize>,
}

const OPERATORS: &[&str] = &[
    "**=", "&&", "||", "==", "<=", ">=", "!=", "!~", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**",
    "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", "<", ">", "~", "?", ":", "=",
    "$",
];

impl<'s> Scanner<'s> {
    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn issue<T>(&self, start: usize, why: &'static str) -> Result<T, ScriptIssue> {
        Err(ScriptIssue::new(start, self.text.len().min(self.at.max(start + 1)), why))
    }

    fn push(&mut self, kind: Kind, start: usize, operand: bool) {
        let text = self.text.get(start..self.at).unwrap_or("");
        self.tokens.push(Token { kind, text, start, operand });
    }

    fn after_operand(&self) -> bool {
        self.tokens.last().is_some_and(|token| token.operand)
    }

    fn scan(mut self) -> Result<Vec<Token<'s>>, ScriptIssue> {
        while let Some(first) = self.rest().chars().next() {
            let start = self.at;
            match first {
                ' ' | '\t' => self.at += 1,
                '\n' => {
                    self.at += 1;
                    // After other keywords a line may go on: busybox takes `print 1 in`, line break, `a > "f"` together.
                    let ends = self.tokens.last().is_some_and(|token| {
                        token.operand
                            || token.kind == Kind::Keyword
                                && matches!(token.text, "print" | "printf" | "next" | "nextfile" | "exit")
                    });
                    if ends && self.print.is_some_and(|depth| self.open.len() <= depth) {
                        self.print = None;
                    }
                    self.push(Kind::Newline, start, false);
                }
                '\\' => {
                    self.at += 1;
                    if !self.rest().starts_with('\n') {
                        return self.issue(start, "is a backslash that does not end its line");
                    }
                    self.at += 1;
                }
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                '"' => self.string(start)?,
                '0'..='9' => self.number(start),
                '.' if self
                    .rest()
                    .get(1..2)
                    .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit())) =>
                {
                    self.number(start);
                }
                'a'..='z' | 'A'..='Z' | '_' => self.word(start)?,
                _ => self.operator(start)?,
            }
        }
        if self.open.is_empty() {
            Ok(self.tokens)
        } else {
            self.issue(self.text.len().saturating_sub(1), "has brackets that are not closed")
        }
    }

    fn string(&mut self, start: usize) -> Result<(), ScriptIssue> {
        let mut escaped = false;
        for (offset, c) in self.rest().char_indices().skip(1) {
            match c {
                '\n' => return self.issue(start, "is a string with a line break in it"),
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at = start + offset + 1;
                    self.push(Kind::Text, start, true);
                    return Ok(());
                }
                _ => {}
            }
        }
        self.issue(start, "is a string without its end")
    }

    fn number(&mut self, start: usize) {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        self.at += digits(self.rest());
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix(['e', 'E']) {
            let sign = usize::from(after.starts_with(['+', '-']));
            let exponent = after.get(sign..).unwrap_or("");
            if exponent.starts_with(|c: char| c.is_ascii_digit()) {
                self.at += 1 + sign + exponent.find(|c: char| !c.is_ascii_digit()).unwrap_or(exponent.len());
            }
        }
        self.push(Kind::Number, start, true);
    }

    fn word(&mut self, start: usize) -> Result<(), ScriptIssue> {
        let rest = self.rest();
        self.at += rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = self.text.get(start..self.at).unwrap_or("");
        if let Some(why) = special(word) {
            return self.issue(start, why);
        }
        let next = self.rest().trim_start_matches([' ', '\t']);
        if KEYWORDS.contains(&word) {
            if matches!(word, "print" | "printf") {
                self.print = Some(self.open.len());
            }
            self.push(Kind::Keyword, start, false);
        } else if FUNCTIONS.contains(&word) && next.starts_with('(') {
            self.push(Kind::Function, start, false);
        } else if next.starts_with('(') {
            return self.issue(start, "calls a function that is not among those that only compute");
        } else if FUNCTIONS.contains(&word) && (word != "length" || next.starts_with(['/', '\\'])) {
            return self.issue(start, "is a function without its arguments");
        } else {
            self.push(Kind::Name, start, true);
        }
        Ok(())
    }

    fn operator(&mut self, start: usize) -> Result<(), ScriptIssue> {
        let rest = self.rest();
        if rest.starts_with('/') && !self.after_operand() {
            return self.regex(start);
        }
        let line = rest.split('\n').next().unwrap_or("");
        if line.strip_prefix("/=").is_some_and(|more| more.contains('/')) {
            return self.issue(
                start,
                "is a division or the beginning of a regular expression, depending on the awk",
            );
        }
        let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) else {
            self.at += rest.chars().next().map_or(1, char::len_utf8);
            return self.issue(start, "is a pipe, or not part of the language that is admitted");
        };
        self.at += operator.len();
        let mut operand = false;
        match *operator {
            "(" if self.tokens.last().is_some_and(|token| matches!(token.text, "if" | "for" | "while")) => {
                self.open.push(HEADER);
            }
            "(" | "[" | "{" => self.open.extend(operator.bytes()),
            ")" | "]" | "}" => {
                let matching = match (self.open.pop(), *operator) {
                    (Some(opened @ (b'(' | HEADER)), ")") => {
                        operand = opened == b'(';
                        true
                    }
                    (Some(b'['), "]") => {
                        operand = true;
                        true
                    }
                    (opened, _) => opened == Some(b'{') && *operator == "}",
                };
                if !matching {
                    return self.issue(start, "closes a bracket that is not open");
                }
                if self.print.is_some_and(|depth| self.open.len() < depth) {
                    self.print = None;
                }
            }
            ";" => self.print = None,
            // A `/` after them is refused, so whether they stand before or after their variable does not matter.
            "++" | "--" => {}
            ">" | ">=" => {
                let redirects = self
                    .print
                    .is_some_and(|depth| !self.open.iter().skip(depth).any(|c| matches!(*c, b'(' | HEADER)));
                if redirects {
                    return self.issue(start, "writes into a file");
                }
                if self.rest().starts_with('>') {
                    return self.issue(start, "appends to a file");
                }
            }
            ":" if self.rest().starts_with(':') => return self.issue(start, "names another name space"),
            _ => {}
        }
        self.push(Kind::Operator, start, operand);
        Ok(())
    }

    /// A regular expression. Some awks let a `/` inside brackets be, others end there; some read `/=` as an operator.
    fn regex(&mut self, start: usize) -> Result<(), ScriptIssue> {
        if let Some(before) = self.tokens.last() {
            let keyword = before.kind == Kind::Keyword && !matches!(before.text, "print" | "printf");
            // After the header of an `if` or loop; and mawk takes a `/` after `i++` for a regular expression.
            if keyword || before.is(")") || before.is("++") || before.is("--") {
                return self.issue(start, "is a regular expression or a division, depending on the awk");
            }
        }
        let mut escaped = false;
        for (offset, c) in self.rest().char_indices().skip(1) {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '/' => {
                    self.at = start + offset + 1;
                    let inside = self.text.get(start + 1..start + offset).unwrap_or("");
                    if inside.starts_with('=') || brackets_differ(inside.as_bytes()) {
                        return self.issue(start, "is a regular expression whose end depends on the awk");
                    }
                    self.push(Kind::Regex, start, true);
                    return Ok(());
                }
                _ => {}
            }
        }
        self.issue(start, "is a regular expression without its end")
    }
}

/// Whether a bracket expression may still be open at the end of the text, in either of two ways of reading it: with
/// character classes (gawk, mawk), or up to the first `]`.
fn brackets_differ(text: &[u8]) -> bool {
    let (mut nested, mut plain) = (0_u32, false);
    // Whether a `]` here is the first character of a bracket expression.
    let mut first = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let next = text.get(at + 1);
        let mut opens = false;
        match byte {
            b'\\' => at += 1,
            b'[' => {
                opens = nested == 0;
                if opens || matches!(next, Some(b':' | b'.' | b'=')) {
                    nested += 1;
                }
                plain = true;
                at += usize::from(opens && next == Some(&b'^'));
            }
            b']' if !first => {
                nested = nested.saturating_sub(1);
                plain = false;
            }
            _ => {}
        }
        first = opens;
        at += 1;
    }
    nested != 0 || plain
}

struct Walk<'t, 's> {
    tokens: &'t [Token<'s>],
}

impl<'s> Walk<'_, 's> {
    fn get(&self, at: usize) -> Option<&Token<'s>> {
        self.tokens.get(at)
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.get(at).is_some_and(|token| token.is(text))
    }

    fn newlines(&self, mut at: usize) -> usize {
        while self.get(at).is_some_and(|token| token.kind == Kind::Newline) {
            at += 1;
        }
        at
    }

    /// The place after the bracket that closes the one at `at`.
    fn beyond(&self, mut at: usize) -> usize {
        let mut depth = 0_usize;
        while let Some(token) = self.get(at) {
            at += 1;
            if token.kind == Kind::Operator {
                match token.text {
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            if depth == 0 {
                break;
            }
        }
        at
    }

    /// Whether there are rules other than `BEGIN { … }`.
    fn reads_input(&self) -> bool {
        let mut at = 0;
        loop {
            while self.get(at).is_some_and(|token| token.kind == Kind::Newline || token.is(";")) {
                at += 1;
            }
            if at >= self.tokens.len() {
                return false;
            }
            if !self.is(at, "BEGIN") || !self.is(at + 1, "{") {
                return true;
            }
            at = self.beyond(at + 1);
        }
    }

    /// The place after the statement that begins at `at`.
    fn statement(&self, at: usize, depth: usize) -> usize {
        let at = self.newlines(at);
        if depth > MOST_DEPTH {
            return self.tokens.len();
        }
        if self.is(at, "{") {
            return self.beyond(at);
        }
        if self.is(at, "if") {
            let end = self.statement(self.beyond(at + 1), depth + 1);
            let mut next = end;
            while self.get(next).is_some_and(|token| token.kind == Kind::Newline || token.is(";")) {
                next += 1;
            }
            return if self.is(next, "else") { self.statement(next + 1, depth + 1) } else { end };
        }
        if self.is(at, "for") {
            return self.statement(self.beyond(at + 1), depth + 1);
        }
        let mut end = at;
        while let Some(token) = self.get(end) {
            match token.text {
                "(" | "[" if token.kind == Kind::Operator => end = self.beyond(end),
                "}" if token.kind == Kind::Operator => return end,
                ";" if token.kind == Kind::Operator => return end + 1,
                _ if token.kind == Kind::Newline => {
                    // A line that ends with an operator may go on, depending on the awk.
                    let before = end.checked_sub(1).and_then(|before| self.get(before));
                    let goes_on = before.is_some_and(|before| {
                        before.kind == Kind::Operator
                            && !matches!(before.text, ")" | "]" | "}" | ";" | "++" | "--")
                    });
                    if goes_on {
                        end += 1;
                    } else {
                        return end + 1;
                    }
                }
                _ => end += 1,
            }
        }
        end
    }

    /// Every loop must be seen to end.
    fn loops(&self) -> Result<(), ScriptIssue> {
        // Where the bodies of counting loops end that are open.
        let mut inside: Vec<usize> = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            inside.retain(|end| *end > at);
            if token.kind != Kind::Keyword {
                continue;
            }
            match token.text {
                "while" | "do" | "return" => return token.endless(),
                "for" => {}
                _ => continue,
            }
            if !self.is(at + 1, "(") {
                return token.issue("is not a loop that is understood");
            }
            let body = self.beyond(at + 1);
            let header = self.tokens.get(at + 2..body.saturating_sub(1)).unwrap_or(&[]);
            let end = self.statement(body, 0);
            if let [key, keyword, array] = header
                && key.kind == Kind::Name
                && keyword.is("in")
                && array.kind == Kind::Name
            {
                continue;
            }
            inside.push(end);
            let everything = self.tokens.get(at + 2..end).unwrap_or(&[]);
            if inside.len() > MOST_NESTED || !counts(header, everything) {
                return token.endless();
            }
        }
        if let Some(large) =
            self.tokens.iter().find(|token| token.kind == Kind::Number && is_large(token.text))
            && self.tokens.iter().any(|token| token.is("for"))
        {
            return large.endless();
        }
        Ok(())
    }
}

fn is_large(number: &str) -> bool {
    let whole = number.split('.').next().unwrap_or(number);
    number.contains(['e', 'E'])
        || whole.len() > 8
        || whole.parse::<u32>().is_ok_and(|value| value > MOST_ROUNDS)
}

/// Whether the header of a `for` counts a variable towards a bound that nothing inside the loop changes.
fn counts(header: &[Token<'_>], everything: &[Token<'_>]) -> bool {
    let mut parts = header.split(|token| token.is(";"));
    let (Some(_), Some(condition), Some(step), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let [counter, compares, rest @ ..] = condition else {
        return false;
    };
    let up = match compares.text {
        "<" | "<=" => true,
        ">" | ">=" => false,
        _ => return false,
    };
    let steps = match step {
        [name, operator] if name.kind == Kind::Name => name.text == counter.text && operator.is(one(up)),
        [operator, name] => name.text == counter.text && operator.is(one(up)),
        [name, operator, by] => {
            name.text == counter.text
                && operator.is(if up { "+=" } else { "-=" })
                && by.kind == Kind::Number
                && by.text.bytes().all(|byte| byte.is_ascii_digit())
                && by.text.bytes().any(|byte| byte != b'0')
        }
        _ => false,
    };
    // Further conditions joined by `&&` only end it sooner.
    let bound = rest.split(|token| token.is("&&")).next().unwrap_or(&[]);
    let weakened = rest.iter().any(|token| token.is("||") || token.is("?") || token.is(":"));
    if counter.kind != Kind::Name
        || !steps
        || weakened
        || bound.is_empty()
        || is_builtin_counter(counter.text)
    {
        return false;
    }
    // The counter changes once in the step and, the first time round, in the beginning.
    let header_end = header.len();
    let body = everything.get(header_end..).unwrap_or(&[]);
    let changed = |name: &str| changes(name, condition, counter.text) || changes(name, body, counter.text);
    if changed(counter.text) {
        return false;
    }
    let mut at = 0;
    while let Some(token) = bound.get(at) {
        at += 1;
        match token.kind {
            Kind::Number => {}
            Kind::Name if token.text == counter.text => return false,
            Kind::Name if token.text == "NF" => {
                if changed("NF") || changed("$0") {
                    return false;
                }
            }
            Kind::Name if token.text == "length" => {
                if changed("$0") {
                    return false;
                }
            }
            Kind::Name => {
                if changed(token.text) || bound.get(at).is_some_and(|next| next.is("[")) {
                    return false;
                }
            }
            Kind::Function => {
                // `length($0)`
                let call = bound.get(at..at + 4).unwrap_or(&[]);
                let whole = matches!(call, [open, dollar, zero, close]
                    if open.is("(") && dollar.is("$") && zero.text == "0" && close.is(")"));
                if token.text != "length" || !whole || changed("$0") {
                    return false;
                }
                at += 4;
            }
            Kind::Operator if matches!(token.text, "+" | "-" | "(" | ")") => {}
            Kind::Operator | Kind::Text | Kind::Regex | Kind::Keyword | Kind::Newline => return false,
        }
    }
    true
}

const fn one(up: bool) -> &'static str {
    if up { "++" } else { "--" }
}

/// Variables that awk itself changes.
fn is_builtin_counter(name: &str) -> bool {
    matches!(name, "NR" | "NF" | "FNR" | "RSTART" | "RLENGTH" | "length" | "RT" | "ARGIND")
}

/// Whether the variable `name` may get another value among these tokens; `$0` stands for the record and the number of
/// its fields. A field that is numbered by the counter of the loop exists already, so that changing it adds none.
fn changes(name: &str, tokens: &[Token<'_>], counter: &str) -> bool {
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let after = tokens.get(at + 1);
        if token.kind == Kind::Name && token.text == name {
            // `$i = x` gives a value to the field, not to `i`.
            let field = before.is_some_and(|before| before.is("$"));
            let assigned = !field && after.is_some_and(Token::assigns);
            let counted = before.is_some_and(|before| before.is("++") || before.is("--"));
            let element = after.is_some_and(|after| after.is("["));
            let key = after.is_some_and(|after| after.is("in"))
                && before.is_some_and(|before| before.is("("))
                && at.checked_sub(2).and_then(|two| tokens.get(two)).is_some_and(|two| two.is("for"));
            if assigned || counted || element || key {
                return true;
            }
        }
        if name == "$0" && token.is("$") {
            let by_counter = after.is_some_and(|field| field.kind == Kind::Name && field.text == counter);
            if !by_counter && field_may_be_assigned(tokens, at) {
                return true;
            }
        }
        // These give a value to one of their arguments.
        if token.kind == Kind::Function
            && matches!(token.text, "sub" | "gsub" | "split" | "match" | "asort" | "asorti" | "patsplit")
        {
            let arguments = arguments(tokens, at + 1);
            let target = match token.text {
                "split" | "patsplit" => arguments.get(1),
                "asort" | "asorti" => arguments.first(),
                _ => arguments.get(2),
            };
            let hit = match target {
                None => name == "$0" && matches!(token.text, "sub" | "gsub"),
                Some([dollar, field]) if dollar.is("$") && field.text == counter => false,
                Some(target) => {
                    name == "$0" && target.iter().any(|part| part.is("$"))
                        || target.iter().any(|part| part.kind == Kind::Name && part.text == name)
                }
            };
            if hit {
                return true;
            }
        }
    }
    false
}

/// Whether something is assigned to the field that begins with the `$` at `at`, as far as the next tokens tell.
fn field_may_be_assigned(tokens: &[Token<'_>], at: usize) -> bool {
    if at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|t| t.is("++") || t.is("--")) {
        return true;
    }
    let mut depth = 0_usize;
    for token in tokens.iter().skip(at + 1) {
        if token.kind == Kind::Operator && matches!(token.text, "(" | "[") {
            depth += 1;
        } else if depth > 0 {
            depth -= usize::from(token.kind == Kind::Operator && matches!(token.text, ")" | "]"));
        } else if token.assigns() {
            return true;
        } else if !token.is("$") && !matches!(token.kind, Kind::Number | Kind::Name | Kind::Function) {
            return false;
        }
    }
    false
}

/// The arguments of the call whose `(` is at `at`, split at its commas.
fn arguments<'t, 's>(tokens: &'t [Token<'s>], at: usize) -> Vec<&'t [Token<'s>]> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut from = at + 1;
    for (here, token) in tokens.iter().enumerate().skip(at) {
        if token.kind != Kind::Operator {
            continue;
        }
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.push(tokens.get(from..here).unwrap_or(&[]));
                    break;
                }
            }
            "," if depth == 1 => {
                found.push(tokens.get(from..here).unwrap_or(&[]));
                from = here + 1;
            }
            _ => {}
        }
    }
    found
}

//! The smallest pieces: nom parsers that know characters but no grammar.

use alloc::string::String;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, digit1, one_of, satisfy};
use nom::combinator::{all_consuming, map, map_opt, not, opt, peek, recognize, value, verify};
use nom::multi::{fold_many0, many0_count};
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

/// Whether `byte` ends a word: a blank, a newline or an operator character.
///
/// Only space, tab and newline separate words; a carriage return or a no-break space is part of the word.
pub(crate) const fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

/// Whether `byte` starts something other than plain text inside a word: a quote, an escape or an expansion.
pub(crate) const fn starts_quote(byte: u8) -> bool {
    matches!(byte, b'\'' | b'"' | b'\\' | b'`' | b'$')
}

/// Whether `byte` may be the first of a variable name.
pub(crate) const fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Whether `byte` may stand in a variable name after its first.
pub(crate) const fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A variable name.
pub(crate) fn name(input: &str) -> IResult<&str, &str> {
    recognize((
        satisfy(|c| c.is_ascii_alphabetic() || c == '_'),
        take_while(|c: char| c.is_ascii_alphanumeric() || c == '_'),
    ))
    .parse(input)
}

/// `NAME=` or `NAME+=`: the name, and whether the value is appended.
pub(crate) fn assignment(input: &str) -> IResult<&str, (&str, bool)> {
    terminated((name, map(opt(char('+')), |plus| plus.is_some())), char('=')).parse(input)
}

/// What may stand between `${` and `}`: a name, a positional parameter or a special parameter, without operators.
pub(crate) fn braced_parameter(input: &str) -> IResult<&str, &str> {
    terminated(alt((name, digit1, recognize(one_of("?#@*")))), char('}')).parse(input)
}

/// What may follow `$` without braces: a name, one digit or a special parameter.
pub(crate) fn bare_parameter(input: &str) -> IResult<&str, &str> {
    alt((name, recognize(satisfy(|c| c.is_ascii_digit())), recognize(one_of("?#@*$!-")))).parse(input)
}

/// The operators of redirections, longest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectOperator {
    /// `&>>`
    BothAppend,
    /// `&>`
    Both,
    /// `<<<`
    HereString,
    /// `<<-`
    HereDocumentTabs,
    /// `<<`
    HereDocument,
    /// `<&`
    DuplicateIn,
    /// `<>`
    ReadWrite,
    /// `<`
    Read,
    /// `>>`
    Append,
    /// `>&`
    DuplicateOut,
    /// `>` or `>|`
    Write,
}

/// A redirection operator; `<(` and `>(`, which are process substitutions, are not.
pub(crate) fn redirect_operator(input: &str) -> IResult<&str, RedirectOperator> {
    use RedirectOperator as R;
    terminated(
        alt((
            value(R::BothAppend, tag("&>>")),
            value(R::Both, tag("&>")),
            value(R::HereString, tag("<<<")),
            value(R::HereDocumentTabs, tag("<<-")),
            value(R::HereDocument, tag("<<")),
            value(R::DuplicateIn, tag("<&")),
            value(R::ReadWrite, tag("<>")),
            value(R::Read, tag("<")),
            value(R::Append, tag(">>")),
            value(R::DuplicateOut, tag(">&")),
            value(R::Write, tag(">|")),
            value(R::Write, tag(">")),
        )),
        not(char('(')),
    )
    .parse(input)
}

/// A file descriptor in front of a redirection operator, which is not consumed.
pub(crate) fn descriptor(input: &str) -> IResult<&str, &str> {
    terminated(digit1, peek(one_of("<>"))).parse(input)
}

/// A comment up to, and without, its newline. A backslash does not continue it.
pub(crate) fn comment(input: &str) -> IResult<&str, &str> {
    recognize((char('#'), take_while(|c| c != '\n'))).parse(input)
}

/// One line without its newline, and whether there was one.
pub(crate) fn line(input: &str) -> IResult<&str, (&str, bool)> {
    (take_while(|c| c != '\n'), map(opt(char('\n')), |end| end.is_some())).parse(input)
}

/// An arithmetic expression made of decimal numbers, operators, parentheses and blanks, up to the parenthesis that
/// it does not open itself. Names, subscripts and assignments are not in it: bash evaluates the *text* that a name
/// holds, so a name can run commands.
pub(crate) fn arithmetic(input: &str) -> IResult<&str, &str> {
    let atom = alt((
        digit1,
        take_while1(|c| c == ' ' || c == '\t'),
        tag("=="),
        tag("!="),
        tag("<="),
        tag(">="),
        recognize(one_of("+-*/%<>!&|^~?:,()")),
    ));
    let mut depth = 0_usize;
    let cut = input.bytes().position(|byte| match byte {
        b'(' => {
            depth += 1;
            false
        }
        b')' if depth == 0 => true,
        b')' => {
            depth -= 1;
            false
        }
        other => other == b'\n',
    });
    let (text, rest) = input.split_at_checked(cut.unwrap_or(input.len())).unwrap_or((input, ""));
    let (_, text) = verify(all_consuming(recognize(many0_count(atom))), |text: &str| {
        text.bytes().any(|b| b.is_ascii_digit())
    })
    .parse(text)?;
    Ok((rest, text))
}

/// The text of `$'…'` after its opening quote, decoded, up to and with the closing quote.
///
/// Only escapes whose result does not depend on the locale are read: code points above ASCII, NUL (which would cut the
/// word short), `\c` and unknown letters are not.
pub(crate) fn ansi_c(input: &str) -> IResult<&str, String> {
    fn code(digits: &str, radix: u32) -> Option<char> {
        let code = u32::from_str_radix(digits, radix).ok().filter(|code| (1..0x80).contains(code))?;
        char::from_u32(code)
    }
    let hex = |most| take_while_m_n(1, most, |c: char| c.is_ascii_hexdigit());
    let escape = preceded(
        char('\\'),
        alt((
            value('\x07', char('a')),
            value('\x08', char('b')),
            value('\x1b', one_of("eE")),
            value('\x0c', char('f')),
            value('\n', char('n')),
            value('\r', char('r')),
            value('\t', char('t')),
            value('\x0b', char('v')),
            one_of("\\'\"?"),
            map_opt(take_while_m_n(1, 3, |c: char| c.is_digit(8)), |digits| code(digits, 8)),
            map_opt(preceded(char('x'), hex(2)), |digits| code(digits, 16)),
            map_opt(preceded(char('u'), hex(4)), |digits| code(digits, 16)),
            map_opt(preceded(char('U'), hex(8)), |digits| code(digits, 16)),
        )),
    );
    let plain = take_while1(|c| c != '\\' && c != '\'');
    let (rest, text) =
        fold_many0(alt((map(plain, Piece::Run), map(escape, Piece::One))), String::new, |mut text, piece| {
            match piece {
                Piece::Run(run) => text.push_str(run),
                Piece::One(one) => text.push(one),
            }
            text
        })
        .parse(input)?;
    let (rest, _) = char('\'').parse(rest)?;
    Ok((rest, text))
}

/// A run of plain characters or one decoded escape.
enum Piece<'a> {
    Run(&'a str),
    One(char),
}

/// `LOW..HIGH` or `LOW..HIGH..STEP`, the inside of a sequence brace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// Whole numbers, padded with zeros to `width` where it is not zero.
    Numbers {
        /// The first.
        from: i64,
        /// The last, or the bound when the step misses it.
        to: i64,
        /// The size of a step, never zero.
        step: u64,
        /// The least number of digits.
        width: usize,
    },
    /// Letters of one case.
    Letters {
        /// The first.
        from: u8,
        /// The last, or the bound when the step misses it.
        to: u8,
        /// The size of a step, never zero.
        step: u64,
    },
}

/// The sequences whose meaning is beyond doubt: numbers of at most nine digits without a plus sign, zero-padded only
/// when not negative, and letters of one case.
pub(crate) fn sequence(input: &str) -> IResult<&str, Sequence> {
    // The value, its length as written, and whether it is padded with zeros.
    fn number(input: &str) -> IResult<&str, (i64, usize, bool)> {
        map_opt(recognize((opt(char('-')), digit1)), |text: &str| {
            let digits = text.trim_start_matches('-');
            let padded = digits.len() > 1 && digits.starts_with('0');
            let number = text.parse().ok().filter(|_| text.len() <= 9)?;
            Some((number, text.len(), padded))
        })
        .parse(input)
    }
    fn step(input: &str) -> IResult<&str, u64> {
        map(opt(preceded(tag(".."), number)), |step| step.map_or(1, |(step, ..)| step.unsigned_abs().max(1)))
            .parse(input)
    }
    fn letter(input: &str) -> IResult<&str, char> {
        satisfy(|c| c.is_ascii_alphabetic()).parse(input)
    }
    let numbers = map_opt((number, tag(".."), number, step), |(left, _, right, step)| {
        let padded = left.2 || right.2;
        let width = if padded { left.1.max(right.1) } else { 0 };
        let clear = !padded || (left.0 >= 0 && right.0 >= 0);
        clear.then_some(Sequence::Numbers { from: left.0, to: right.0, step, width })
    });
    let letters = map_opt((letter, tag(".."), letter, step), |(from, _, to, step)| {
        let same = from.is_ascii_lowercase() == to.is_ascii_lowercase();
        same.then_some(Sequence::Letters { from: from as u8, to: to as u8, step })
    });
    all_consuming(alt((numbers, letters))).parse(input)
}

/// The bracket pattern at the start of `text`, with its brackets: `[`, an optional `!` or `^`, a `]` that is first and
/// therefore text, and everything up to the next `]` outside `[:class:]`, `[.x.]` and `[=x=]`.
pub(crate) fn bracket(text: &str) -> Option<&str> {
    let named = |mark: &'static str, end: &'static str| {
        recognize((tag("["), tag(mark), take_while_m_n(0, 16, |c: char| c.is_ascii_alphanumeric()), tag(end)))
    };
    let member =
        alt((named(":", ":]"), named(".", ".]"), named("=", "=]"), recognize(satisfy(|c: char| c != ']'))));
    let parsed: IResult<&str, &str> =
        recognize((char('['), opt(one_of("!^")), opt(char(']')), many0_count(member), char(']'))).parse(text);
    parsed.ok().map(|(_, class)| class)
}

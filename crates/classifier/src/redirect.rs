//! Redirections: a closed list is harmless.

use crate::arg::Shape;
use crate::finding::Code;
use crate::script::Judge;
use alloc::vec::Vec;
use cmdgate_lexer::{Redirect, RedirectKind};

impl<'a> Judge<'a> {
    /// Judges the redirections of a command; true when its standard input then comes from a file or text.
    pub(crate) fn redirects(&mut self, redirects: &[Redirect<'a>]) -> bool {
        let mut feeds_input = false;
        for redirect in redirects {
            feeds_input |= self.redirect(redirect);
        }
        feeds_input
    }

    fn redirect(&mut self, redirect: &Redirect<'a>) -> bool {
        let standard = redirect.fd.is_none_or(|fd| fd <= 2);
        let is_input = redirect.fd.is_none_or(|fd| fd == 0);
        if !standard {
            self.report(Code::Redirect, redirect.span, "only the standard streams may be redirected", None);
            return false;
        }
        match &redirect.kind {
            RedirectKind::Read(target) => {
                let mut args = Vec::with_capacity(1);
                self.word(target, &mut args);
                for arg in &args {
                    // The pattern of a loop's variable stands for one name.
                    if matches!(arg.shape, Shape::Exact | Shape::Pipe | Shape::Pattern { many: false, .. }) {
                        self.read_path(arg);
                    } else {
                        self.report(
                            Code::PathUnknown,
                            arg.span,
                            "the file that is read is not exactly known",
                            None,
                        );
                    }
                }
                is_input
            }
            RedirectKind::Write { target, .. } | RedirectKind::WriteBoth { target, .. } => {
                if target.literal() != Some("/dev/null") {
                    let mut args = Vec::with_capacity(1);
                    self.word(target, &mut args);
                    for arg in &args {
                        self.write_path(arg);
                    }
                    self.report(Code::RedirectWrites, redirect.span, "writes its output into a file", None);
                }
                false
            }
            RedirectKind::ReadWrite(target) => {
                let mut args = Vec::with_capacity(1);
                self.word(target, &mut args);
                for arg in &args {
                    self.write_path(arg);
                }
                self.report(Code::Redirect, redirect.span, "creates the file when it is missing", None);
                false
            }
            RedirectKind::Duplicate(to) => {
                if *to > 2 {
                    self.report(
                        Code::Redirect,
                        redirect.span,
                        "only the standard streams may be duplicated",
                        None,
                    );
                }
                false
            }
            RedirectKind::Close => {
                self.report(
                    Code::Redirect,
                    redirect.span,
                    "closing a stream is not on the list of harmless redirections",
                    None,
                );
                false
            }
            RedirectKind::HereDocument { body, .. } | RedirectKind::HereString(body) => {
                let mut args = Vec::with_capacity(1);
                self.unexpanded(body, &mut args);
                is_input
            }
        }
    }
}

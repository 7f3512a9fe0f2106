//! Layered allow, ask and deny rules for reads, writes, programs and network hosts; deny always wins.

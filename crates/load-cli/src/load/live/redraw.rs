//! Redraws lines in place at the bottom of a terminal. Used by `verbs::load::live`.

use std::io::Write;

/// Replaces the lines that it drew before.
#[derive(Debug)]
pub struct Redraw<W: Write> {
    to: W,
    /// Columns that each line on the screen takes.
    drawn: Vec<usize>,
}

impl<W: Write> Redraw<W> {
    pub fn new(to: W) -> Redraw<W> {
        Redraw { to, drawn: Vec::new() }
    }

    /// Replaces what was drawn. Lines are cut to `width` columns, so that each takes one row.
    pub fn draw(&mut self, lines: &[String], width: usize) {
        let lines: Vec<_> = lines.iter().map(|line| console::truncate_str(line, width, "…")).collect();
        let mut text = self.back(width);
        for line in &lines {
            // Clears the rest of a wider line.
            text.push_str(&format!("{line}\x1b[K\n"));
        }
        // Clears the rest of a longer frame.
        text.push_str("\x1b[J");
        self.drawn = lines.iter().map(|line| console::measure_text_width(line)).collect();
        self.write(&text);
    }

    /// Removes what was drawn.
    pub fn clear(&mut self, width: usize) {
        let text = format!("{}\x1b[J", self.back(width));
        self.drawn.clear();
        self.write(&text);
    }

    /// Moves to the start of the first row drawn. A terminal that became narrower has wrapped lines into more rows.
    fn back(&self, width: usize) -> String {
        let rows: usize = self.drawn.iter().map(|columns| columns.div_ceil(width.max(1)).max(1)).sum();
        if rows == 0 { "\r".to_owned() } else { format!("\r\x1b[{rows}A") }
    }

    fn write(&mut self, text: &str) {
        // Errors are ignored: the terminal is gone.
        let _ = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// What a terminal shows after what was written to it; an LF goes to the first column, as terminals are set.
    fn shown(screen: &mut vt100::Parser, redraw: &mut Redraw<Vec<u8>>) -> String {
        let written = String::from_utf8(std::mem::take(&mut redraw.to)).expect("text").replace('\n', "\r\n");
        screen.process(written.as_bytes());
        screen.screen().contents()
    }

    #[test]
    fn a_frame_replaces_the_one_before() {
        let mut screen = vt100::Parser::new(6, 20, 0);
        screen.process(b"$ weir load\r\n");
        let mut redraw = Redraw::new(Vec::new());
        redraw.draw(&lines(&["one", "two is long", "three"]), 20);
        assert_eq!(shown(&mut screen, &mut redraw), "$ weir load\none\ntwo is long\nthree");
        redraw.draw(&lines(&["1", "2"]), 20);
        assert_eq!(shown(&mut screen, &mut redraw), "$ weir load\n1\n2");
        redraw.clear(20);
        assert_eq!(shown(&mut screen, &mut redraw), "$ weir load");
    }

    #[test]
    fn lines_are_cut_to_the_terminal() {
        let mut screen = vt100::Parser::new(6, 10, 0);
        let mut redraw = Redraw::new(Vec::new());
        for _ in 0..3 {
            redraw.draw(&lines(&["0123456789abc", "x"]), 10);
        }
        assert_eq!(shown(&mut screen, &mut redraw), "012345678…\nx");
    }

    #[test]
    fn a_terminal_that_became_narrower_shows_rows_of_the_frame_broken() {
        // What a terminal that reflows shows of two lines of 16 and 5 columns when it becomes 10 wide: three rows.
        let mut redraw = Redraw::new(Vec::new());
        redraw.draw(&lines(&["0123456789abcdef", "short"]), 20);
        redraw.to.clear();
        redraw.draw(&lines(&["a"]), 10);
        let text = String::from_utf8(redraw.to).expect("text");
        assert!(text.starts_with("\r\x1b[3A"), "{text:?}");
    }
}

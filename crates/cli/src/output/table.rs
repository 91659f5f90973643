//! Columns for people: as wide as what is in them, two blanks between.

use super::style::{Colour, Style};

/// A table that is filled row by row.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| super::text::clean(&cell)).collect());
    }

    /// The table as text; `empty` if it has no rows.
    pub(crate) fn show(&self, empty: &str, style: Style) -> String {
        if self.rows.is_empty() {
            return empty.to_owned();
        }
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.max().unwrap_or(0).max(self.head[column].len())
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            cells.join("  ").trim_end().to_owned()
        };
        let mut lines = vec![style.paint(Colour::Cyan, &line(&mut self.head.iter().copied()))];
        lines.extend(self.rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["ID", "VERSION"]);
        table.row(["web1".into(), "3008.3".into()]);
        table.row(["a-longer-one".into(), String::new()]);
        assert_eq!(table.show("", Style::PLAIN), "ID            VERSION\nweb1          3008.3\na-longer-one");
    }

    #[test]
    fn an_empty_table_says_so() {
        assert_eq!(Table::new(&["ID"]).show("There is nothing.", Style::PLAIN), "There is nothing.");
    }
}

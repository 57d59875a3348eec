//! Table that compares the figures of Tambour, each with its target, with those of the bare mapper, the
//! baseline: a server that only turns the frames of a model's reply into events.

/// Target of a figure of Tambour.
pub(crate) enum FigureTarget {
    /// At most this many times the figure of the bare mapper.
    Ratio(f64),
    /// At most this much.
    AtMost(f64),
    /// At most this much more than the bare mapper.
    AtMostMore(f64),
    /// No target.
    None,
}

/// Printer of the table.
#[derive(Default)]
pub(crate) struct FigureTable {
    /// Number of missed targets so far.
    missed_targets: usize,
    /// True once the header is printed, before the first line.
    has_header: bool,
}

impl FigureTable {
    /// Prints a line: `label` and `unit`, the figure of the bare mapper (`None` if it was not measured), that
    /// of Tambour, their ratio, the target, and whether Tambour meets it.
    pub(crate) fn print_line(
        &mut self,
        label: &str,
        unit: &str,
        bare: Option<f64>,
        tambour: f64,
        target: &FigureTarget,
    ) {
        if !self.has_header {
            self.has_header = true;
            println!("{:<54} {:>9} {:>9} {:>6}  target", "", "bare", "tambour", "ratio");
        }
        let ratio = bare.filter(|bare| *bare > 0.0).map(|bare| tambour / bare);
        let (target_text, is_met) = match target {
            FigureTarget::Ratio(max_ratio) => {
                (format!("<= {max_ratio} x"), ratio.map(|ratio| ratio <= *max_ratio))
            }
            FigureTarget::AtMost(max_value) => {
                (format!("<= {max_value} {unit}"), Some(tambour <= *max_value))
            }
            FigureTarget::AtMostMore(max_excess) => {
                (format!("<= bare + {max_excess} {unit}"), bare.map(|bare| tambour - bare <= *max_excess))
            }
            FigureTarget::None => (String::new(), None),
        };
        let result_text = match is_met {
            Some(true) => "  met",
            Some(false) => "  MISSED",
            None => "",
        };
        self.missed_targets += usize::from(is_met == Some(false));
        let format_number =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
        let name = format!("{label}, {unit}");
        println!(
            "{name:<54} {:>9} {:>9} {:>6}  {target_text}{result_text}",
            format_number(bare),
            format_number(Some(tambour)),
            format_number(ratio)
        );
    }

    /// Prints the number of missed targets.
    pub(crate) fn print_end(&self) {
        println!("\n{} missed", self.missed_targets);
    }
}

/// Median of `values`.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Value that a fraction `share` (0 to 1) of `values` does not exceed; NaN if `values` is empty.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last_index = values.len().saturating_sub(1);
    values.get((last_index as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

//! Charts as SVG: ratios with their intervals, and distributions of latency.
//!
//! Invariant: the same run gives the same bytes, so that a chart can be compared with its samples.

use crate::experiment::{FigureSpec, Load, Row};
use crate::outcome::{Outcome, Rounds};
use crate::show::number::three;
use crate::stats::Estimate;
use crate::store::Run;
use plotters::prelude::*;
use std::ops::Range;

/// How high a bar and the room around it are.
const BAR_HEIGHT: u32 = 26;

/// How wide a chart is.
const WIDTH: u32 = 900;

/// Names stand in this.
const NAMES_WIDTH: u32 = 240;

/// Loaded and quiet rounds, told apart without colours too, as one is dark; and how high in its
/// row each stands.
const COLOURS: [(Load, RGBColor, f64); 2] = [
    (Load::Loaded, RGBColor(0x1f, 0x4e, 0x79), 0.68),
    (Load::Quiet, RGBColor(0x8f, 0xb8, 0xde), 0.36),
];

/// What a chart could not be drawn for.
fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> String {
    error.to_string()
}

/// Ratios of the rows of a group to their controls, with intervals; `None` when there are none.
///
/// # Errors
/// The chart could not be drawn.
pub fn ratios(run: &Run, group: &str, figure: &str) -> Result<Option<String>, String> {
    let spec = &run.header.spec;
    let Some(heading) = spec.figures_of(group).find(|it| it.name == figure) else {
        return Ok(None);
    };
    let outcomes = Outcome::all(run);
    let rows = spec.rows.iter().filter(|row| row.group == group);
    let rows = rows.filter(|row| row.control.as_ref().is_some_and(|it| *it != row.name));
    let bars: Vec<Bars<'_>> = rows
        .map(|row| {
            let of = |it: &Outcome<'_>| Some((it.load, it.ratio(row, figure, Rounds::All)?));
            Bars { row, ratios: outcomes.iter().filter_map(of).collect() }
        })
        .filter(|bars| !bars.ratios.is_empty())
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    let id = &run.header.id;
    let title = format!("{id}: {}, × control, medians with 95 % intervals", heading.heading);
    draw_bars(&title, &bars).map(Some)
}

/// The ratios of a row, by load.
struct Bars<'a> {
    row: &'a Row,
    ratios: Vec<(Load, Estimate)>,
}

impl Bars<'_> {
    /// The row, and what it is compared with.
    fn name(&self) -> String {
        format!("{} / {}", self.row.name, self.row.control.as_deref().unwrap_or_default())
    }
}

fn draw_bars(title: &str, bars: &[Bars<'_>]) -> Result<String, String> {
    let all = || bars.iter().flat_map(|it| it.ratios.iter().map(|it| it.1));
    let most = all().map(|it| it.high).fold(1.0, f64::max);
    let least = all().map(|it| it.low).fold(1.0, f64::min).max(1e-3);
    let count = bars.len() as f64;
    let mut text = String::new();
    {
        let size = (WIDTH, 90 + BAR_HEIGHT * bars.len() as u32);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let names = |at: &f64| {
            let is_middle = (at.fract() - 0.5).abs() < 0.01;
            let place = (count - at).floor() as usize;
            bars.get(place).filter(|_| is_middle).map_or_else(String::new, Bars::name)
        };
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(28)
            .y_label_area_size(NAMES_WIDTH)
            .build_cartesian_2d((least / 1.2..most * 1.2).log_scale(), 0.0..count)
            .map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.y_labels(bars.len() * 2 + 1).y_label_formatter(&names).disable_y_mesh();
        mesh.x_desc("× control").draw().map_err(failed)?;
        let one = PathElement::new(vec![(1.0, 0.0), (1.0, count)], BLACK);
        chart.draw_series([one]).map_err(failed)?;
        for (load, colour, shift) in COLOURS {
            let of = |(at, it): (usize, &Bars<'_>)| {
                let ratio = it.ratios.iter().find(|it| it.0 == load)?.1;
                Some((count - at as f64 - 1.0 + shift, ratio))
            };
            let marks: Vec<_> = bars.iter().enumerate().filter_map(of).collect();
            if marks.is_empty() {
                continue;
            }
            let lines = marks.iter().map(|(y, it)| {
                PathElement::new(vec![(it.low, *y), (it.high, *y)], colour.stroke_width(3))
            });
            chart.draw_series(lines).map_err(failed)?;
            let middles =
                marks.iter().map(|(y, it)| Circle::new((it.median, *y), 4, colour.filled()));
            chart
                .draw_series(middles)
                .map_err(failed)?
                .label(load.word())
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        let mut labels = chart.configure_series_labels();
        labels.position(SeriesLabelPosition::UpperLeft).background_style(WHITE.mix(0.8));
        labels.border_style(BLACK.mix(0.3)).draw().map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

/// How much wider a chart of curves is for their names, which stand beside the last points and not
/// over them.
const NAMES_SHARE: f64 = 0.16;

/// How a figure goes with what grows, a curve for each; `None` when no row is a point of one.
///
/// # Errors
/// The chart could not be drawn.
pub fn curves(run: &Run, figure: &FigureSpec, load: Load) -> Result<Option<String>, String> {
    let Some(outcome) = Outcome::new(run, load) else { return Ok(None) };
    let mut curves: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    let mut axis = "";
    for row in &run.header.spec.rows {
        let seen = outcome.figure(&row.name, &figure.name, Rounds::All);
        let Some((point, seen)) = row.point.as_ref().zip(seen.filter(|it| it.median > 0.0)) else {
            continue;
        };
        axis = &point.axis;
        let place = curves.iter().position(|it| it.0 == point.curve).unwrap_or_else(|| {
            curves.push((&point.curve, Vec::new()));
            curves.len() - 1
        });
        curves[place].1.push((point.x, seen.median));
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let title = format!("{}: {}, {} rounds", run.header.id, figure.heading, load.word());
    draw_curves(&title, axis, &figure.heading, &curves).map(Some)
}

/// How a row went over commits: its ratio to its control where it is compared, as figures of two
/// hours are not comparable; `None` when fewer runs than `least` have it.
///
/// # Errors
/// The chart could not be drawn.
pub fn history(
    runs: &[&Run],
    row: &str,
    figure: &str,
    least: usize,
) -> Result<Option<String>, String> {
    let (mut curves, mut heading) = (Vec::new(), String::new());
    for (load, ..) in COLOURS {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for run in runs {
            let spec = &run.header.spec;
            let Some((row, outcome)) = spec.row(row).zip(Outcome::new(run, load)) else { continue };
            let Some(of) = spec.figures_of(&row.group).find(|it| it.name == figure) else {
                continue;
            };
            let seen = match of.is_compared {
                true => outcome.ratio(row, figure, Rounds::All),
                false => outcome.figure(&row.name, figure, Rounds::All),
            };
            points.extend(seen.map(|it| (run.header.commit_count as f64, it.median)));
            let beside = row.control.as_deref().filter(|_| of.is_compared);
            heading = beside.map_or(of.heading.clone(), |it| format!("{}, × {it}", of.heading));
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if points.len() >= least {
            curves.push((load.word(), points));
        }
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let title = format!("{row} over commits: {heading}");
    draw_curves(&title, "commits of the project", &heading, &curves).map(Some)
}

/// From the least to the greatest, with a little room.
fn range(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let greatest = values.fold(f64::NEG_INFINITY, f64::max);
    least / 1.2..greatest * 1.2
}

fn draw_curves(
    title: &str,
    axis: &str,
    heading: &str,
    curves: &[(&str, Vec<(f64, f64)>)],
) -> Result<String, String> {
    let points = || curves.iter().flat_map(|it| it.1.iter().copied());
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, 480)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut places: Vec<f64> = points().map(|it| it.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        // Each at the same distance from the next: 0 has a place too.
        let place = |x: f64| places.iter().position(|it| *it == x).unwrap_or(0) as f64;
        let named = |at: &f64| {
            let x = places.get(at.round() as usize).filter(|_| (at - at.round()).abs() < 0.01);
            x.map_or_else(String::new, f64::to_string)
        };
        let width = places.len() as f64 - 0.6;
        let x = -0.2..width * (1.0 + NAMES_SHARE) - 0.2;
        let y = range(points().map(|it| it.1));
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(60)
            .build_cartesian_2d(x, y.start.log10()..y.end.log10())
            .map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(places.len() + 2).x_label_formatter(&named);
        mesh.y_labels(10).y_label_formatter(&|y| three(10_f64.powf(*y)));
        mesh.x_desc(axis).y_desc(heading).draw().map_err(failed)?;
        for (at, (name, points)) in curves.iter().enumerate() {
            let colour = Palette99::pick(at).to_rgba();
            let points = points.iter().map(|it| (place(it.0), it.1.log10()));
            let series = LineSeries::new(points, colour.stroke_width(2));
            chart.draw_series(series.point_size(3)).map_err(failed)?.label(*name).legend(
                move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2)),
            );
        }
        let mut labels = chart.configure_series_labels();
        labels.position(SeriesLabelPosition::LowerRight).background_style(WHITE.mix(0.8));
        labels.border_style(BLACK.mix(0.3)).draw().map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

/// How latencies are distributed, up to 99.99 of 100, for the rows of a group that kept them, over
/// the rounds of one load; `None` when there are none.
///
/// # Errors
/// The chart could not be drawn.
pub fn latencies(run: &Run, group: &str, load: Load) -> Result<Option<String>, String> {
    let rows: Vec<_> = run.header.spec.rows.iter().filter(|row| row.group == group).collect();
    let curves: Vec<(&str, Vec<(f64, f64)>)> = rows
        .iter()
        .filter_map(|row| Some((row.name.as_str(), curve(run, &row.name, load)?)))
        .collect();
    let values = || curves.iter().flat_map(|(_, points)| points.iter().map(|it| it.1));
    let (Some(least), Some(most)) = (values().reduce(f64::min), values().reduce(f64::max)) else {
        return Ok(None);
    };
    let range: Range<f64> = (least.max(0.01) / 1.2)..(most * 1.2);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, 480)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let title = format!("{}: {group}, {} rounds", run.header.id, load.word());
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..SHARES.len() as f64 - 1.0, range.log_scale())
            .map_err(failed)?;
        let named = |at: &f64| {
            let share = SHARES.get(at.round() as usize).filter(|_| (at - at.round()).abs() < 0.01);
            share.map_or_else(String::new, |share| format!("{} %", share * 100.0))
        };
        chart
            .configure_mesh()
            .x_labels(SHARES.len())
            .x_label_formatter(&named)
            .y_desc("µs one way")
            .draw()
            .map_err(failed)?;
        for (at, (name, points)) in curves.iter().enumerate() {
            let colour = Palette99::pick(at).to_rgba();
            chart
                .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))
                .map_err(failed)?
                .label(*name)
                .legend(move |(x, y)| {
                    PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2))
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(Some(text))
}

/// Shares of a distribution, each at the same distance.
const SHARES: [f64; 8] = [0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.999_9, 1.0];

/// The values at [`SHARES`]: of each the median over the rounds.
fn curve(run: &Run, row: &str, load: Load) -> Option<Vec<(f64, f64)>> {
    let all: Vec<_> = run
        .of(load)
        .filter(|entry| entry.row == row)
        .filter_map(|entry| entry.histogram("one_way_us"))
        .collect();
    let at = |share: f64| {
        let values: Vec<f64> = all.iter().filter_map(|it| it.percentile(share)).collect();
        crate::stats::median(&values)
    };
    SHARES.iter().enumerate().map(|(x, &share)| Some((x as f64, at(share)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::run;
    use crate::store::histogram::Histogram;

    #[test]
    fn a_chart_of_ratios_names_its_rows_and_is_the_same_twice() {
        let run = run();
        let chart = ratios(&run, "bulk", "gbit_per_s").unwrap().unwrap();
        assert!(chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"), "{chart}");
        assert!(chart.contains("ours / gso") && chart.contains("quiet"), "{chart}");
        assert_eq!(ratios(&run, "bulk", "gbit_per_s").unwrap().unwrap(), chart);
        assert_eq!(ratios(&run, "bulk", "p50_us").unwrap(), None, "no such figure");
    }

    #[test]
    fn a_chart_of_curves_needs_rows_that_are_points() {
        let mut run = run();
        let figure = run.header.spec.figures[0].clone();
        assert_eq!(curves(&run, &figure, Load::Quiet).unwrap(), None);
        for (row, x) in run.header.spec.rows.iter_mut().zip([64.0, 4_096.0]) {
            let (curve, axis) = ("ours-tcp".to_owned(), "bytes sent at once".to_owned());
            row.point = Some(crate::experiment::Point { curve, x, axis });
        }
        let chart = curves(&run, &figure, Load::Quiet).unwrap().unwrap();
        assert!(chart.contains("bytes sent at once") && chart.contains("ours-tcp"), "{chart}");
        assert_eq!(curves(&run, &figure, Load::Loaded).unwrap(), None, "no such rounds");
    }

    #[test]
    fn a_history_needs_enough_runs_and_has_the_ratio_to_the_control() {
        let (mut first, second) = (run(), run());
        first.header.commit_count = second.header.commit_count + 7;
        let runs = [&second, &first];
        assert_eq!(history(&runs, "ours", "gbit_per_s", 3).unwrap(), None);
        let chart = history(&runs, "ours", "gbit_per_s", 2).unwrap().unwrap();
        let label = format!(">\n{}\n", first.header.commit_count);
        assert!(chart.contains("× gso") && chart.contains(&label), "{chart}");
    }

    #[test]
    fn a_chart_of_latencies_needs_values_that_were_kept() {
        let mut run = run();
        assert_eq!(latencies(&run, "bulk", Load::Quiet).unwrap(), None);
        let values = Histogram::of(&[1.0, 2.0, 3.0, 90.0]).to_json();
        run.entries.iter_mut().for_each(|it| {
            it.series.insert("one_way_us".to_owned(), values.clone());
        });
        let chart = latencies(&run, "bulk", Load::Quiet).unwrap().unwrap();
        assert!(chart.contains("99.99 %") && chart.contains(">\nours\n"), "{chart}");
    }
}

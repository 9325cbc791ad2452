//! A chart of horizontal bars in groups, as SVG.

use std::path::Path;

use anyhow::{anyhow, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 860;
const LABELS: i32 = 170;
/// For the figure behind the longest bar.
const FIGURES: i32 = 90;
const BAR: i32 = 15;
const GAP: i32 = 4;
const GROUP_HEAD: i32 = 30;
const HEAD: i32 = 44;
const FOOT: i32 = 14;

const INK: RGBColor = RGBColor(40, 40, 40);
const PALE: RGBColor = RGBColor(110, 110, 110);

pub struct Chart {
    pub title: String,
    pub groups: Vec<Group>,
}

pub struct Group {
    pub title: String,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub label: String,
    pub value: f64,
    pub figure: String,
    pub colour: RGBColor,
}

impl Chart {
    /// Each group has a scale of its own: its longest bar fills the width.
    pub fn draw(&self, path: &Path) -> Result<()> {
        let area = SVGBackend::new(path, (WIDTH, self.height() as u32)).into_drawing_area();
        self.draw_on(&area).map_err(|error| anyhow!("drawing {}: {error}", path.display()))
    }

    fn height(&self) -> i32 {
        let group = |group: &Group| GROUP_HEAD + group.bars.len() as i32 * (BAR + GAP);
        HEAD + self.groups.iter().map(group).sum::<i32>() + FOOT
    }

    fn draw_on<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, plotters::coord::Shift>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        area.fill(&WHITE)?;
        let text = |words: &str, at: (i32, i32), size: u32, ink: RGBColor, to: HPos| {
            let style =
                ("sans-serif", size).into_font().color(&ink).pos(Pos::new(to, VPos::Center));
            area.draw(&Text::new(words.to_owned(), at, style))
        };
        text(&self.title, (14, HEAD / 2), 17, INK, HPos::Left)?;
        let mut y = HEAD;
        for group in &self.groups {
            text(&group.title, (14, y + GROUP_HEAD / 2), 14, INK, HPos::Left)?;
            y += GROUP_HEAD;
            let longest = group.bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
            for bar in &group.bars {
                let room = f64::from(WIDTH as i32 - LABELS - FIGURES);
                let end = LABELS + (room * bar.value / longest).round().max(1.0) as i32;
                text(&bar.label, (LABELS - 8, y + BAR / 2), 13, INK, HPos::Right)?;
                area.draw(&Rectangle::new([(LABELS, y), (end, y + BAR)], bar.colour.filled()))?;
                text(&bar.figure, (end + 6, y + BAR / 2), 13, PALE, HPos::Left)?;
                y += BAR + GAP;
            }
        }
        area.present()
    }
}

//! What can be measured, a file each.

mod choices;
mod copies;
mod cost;
mod drawn;
mod flows;
mod host;
mod instructions;
mod links;
mod long;
mod media;
mod modules;
mod network;
mod own;
mod processes;
mod programs;
mod receivers;
mod reliable;
mod rtt;
mod sends;
mod setup;
mod sizes;
mod speed;
pub mod subjects;
mod table;
mod wan;

use crate::experiment::Experiment;
pub use own::number;

/// What `dacapo eval run` calls so, together: `all` but the films, which take hours, and these as
/// `media`; what is over wide-area networks as `wan`; else the one of that name.
///
/// # Errors
/// There is none; those that there are.
pub fn named(id: &str) -> Result<Vec<&'static dyn Experiment>, String> {
    let is_film = |it: &&dyn Experiment| media::all().any(|film| film.id() == it.id());
    match id {
        "all" => Ok(all().into_iter().filter(|it| !is_film(it)).collect()),
        "media" => Ok(media::all().collect()),
        "wan" => {
            let all: [&dyn Experiment; 3] = [&links::LINKS, &long::LONG, &rtt::RTT];
            Ok(all.into_iter().chain(wan::ALL).collect())
        }
        _ => find(id).map(|it| vec![it]),
    }
}

/// All of them.
pub fn all() -> Vec<&'static dyn Experiment> {
    let mut all: Vec<&'static dyn Experiment> =
        vec![&network::Network, &links::LINKS, &sizes::SIZES];
    let grows: [&dyn Experiment; 8] = [
        &processes::PROCESSES,
        &long::LONG,
        &setup::SETUP,
        &flows::FLOWS,
        &receivers::RECEIVERS,
        &modules::MODULES,
        &rtt::RTT,
        &sends::SENDS,
    ];
    all.extend(grows);
    all.extend(wan::ALL);
    all.extend(media::all());
    let counted: [&dyn Experiment; 5] = [
        &instructions::INSTRUCTIONS,
        &copies::COPIES,
        &choices::CHOICES,
        &drawn::DRAWN,
        &cost::COST,
    ];
    all.extend(counted);
    all.extend(speed::SPEED.iter().map(|it| it as &dyn Experiment));
    all.extend(host::ALL.iter().map(|it| it as &dyn Experiment));
    all
}

/// The one of that name.
///
/// # Errors
/// There is none; those that there are.
pub fn find(id: &str) -> Result<&'static dyn Experiment, String> {
    let names = || all().iter().map(|it| it.id()).collect::<Vec<_>>().join(", ");
    let found = all().into_iter().find(|it| it.id() == id);
    found.ok_or_else(|| format!("`{id}` is no experiment; there are {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_leaves_the_films_to_their_own_name() {
        let [all, films] = ["all", "media"].map(|id| named(id).unwrap());
        assert_eq!((films.len(), all.len() + films.len()), (9, super::all().len()));
        let is_film = |it: &&dyn Experiment| it.id().starts_with("media-");
        assert!(films.iter().all(is_film) && !all.iter().any(is_film));
        assert_eq!(named("wan").unwrap().len(), 7);
        assert_eq!(named("media-5-3").unwrap().len(), 1);
        assert!(named("nothing").is_err());
    }

    #[test]
    fn every_experiment_is_sound() {
        for experiment in all() {
            let (id, spec) = (experiment.id(), experiment.spec());
            assert!(!spec.rows.is_empty() && spec.seconds > 0.0 && spec.rounds > 0, "{id}");
            let is_name =
                |it: &str| it.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            for (at, row) in spec.rows.iter().enumerate() {
                assert!(is_name(&row.name), "{id}: {}", row.name);
                assert!(spec.rows[..at].iter().all(|it| it.name != row.name), "{id}: {}", row.name);
                let control = row.control.as_deref().map(|name| spec.row(name));
                let is_same = |it: &crate::experiment::Row| it.group == row.group;
                assert!(control.is_none_or(|it| it.is_some_and(is_same)), "{id}: {}", row.name);
                assert!(spec.figures_of(&row.group).count() > 0, "{id}: {}", row.name);
            }
            for goal in &spec.goals {
                let row = spec.row(&goal.row).unwrap_or_else(|| panic!("{id}: {}", goal.row));
                let figure = spec.figures_of(&row.group).find(|it| it.name == goal.figure);
                assert!(figure.is_some(), "{id}: {} has no {}", goal.row, goal.figure);
                assert!(goal.is_absolute || row.control.is_some(), "{id}: {}", goal.row);
            }
            for (row, figure) in &spec.controls {
                let group = &spec.row(row).unwrap().group;
                assert!(spec.figures_of(group).any(|it| it.name == *figure), "{id}: {row}");
            }
        }
    }

    #[test]
    fn experiments_are_found_by_name() {
        assert_eq!(find("network").map(|it| it.id()).unwrap_or_default(), "network");
        assert!(find("nothing").err().unwrap_or_default().contains("there are network, "));
    }
}

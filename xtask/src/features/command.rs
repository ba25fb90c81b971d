//! Commands, options and values, as the script says with which a shell completes them.
//!
//! ```text
//!   dacapo__subcmd__bench__subcmd__net)          -> command bench net
//!       opts="-l --listen …"                     -> option bench net --listen
//!       --what) … compgen -W "all bulk latency"  -> value bench net --what all
//! ```
//!
//! The script is made from what the program takes, options that its help hides among it.

use super::lost::Lines;

/// Between the words of a command.
const BETWEEN: &str = "__subcmd__";

/// The lines of the `script` of a program that it calls `name`; each command has `under` before
/// it.
#[must_use]
pub fn lines(script: &str, name: &str, under: &str) -> Lines {
    let mut lines = Lines::new();
    let mut command = String::new();
    let mut option = String::new();
    for line in script.lines().map(str::trim) {
        if let Some(label) = line.strip_suffix(')').filter(|it| !it.contains(['(', ' ', ','])) {
            if label.starts_with('-') {
                option = label.to_owned();
            } else if let Some(words) = label.strip_prefix(name) {
                command = format!("{under}{}", words.replace(BETWEEN, " ").trim());
                command.truncate(command.trim_end().len());
                lines.insert(format!("command {command}"));
            }
        } else if let Some(words) = line.strip_prefix("opts=\"") {
            let options = words.trim_end_matches('"').split(' ').filter(|it| it.starts_with('-'));
            lines.extend(options.map(|it| format!("option {command} {it}")));
        } else if let Some((_, values)) = line.split_once("compgen -W \"") {
            let values = values.split('"').next().unwrap_or_default();
            if values != "${opts}" && option.starts_with("--") {
                let value = |it: &str| format!("value {command} {option} {it}");
                lines.extend(values.split(' ').map(value));
            }
        }
    }
    lines.retain(|line| !is_everywhere(line));
    lines
}

/// What every command has, and what repeats the commands.
fn is_everywhere(line: &str) -> bool {
    let is_help = |it: &str| matches!(it, "help" | "--help" | "-h" | "--version" | "-V");
    line == "command " || line.split(' ').skip(1).any(is_help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"
            dacapo,bench)
                cmd="dacapo__subcmd__bench"
                ;;
    case "${cmd}" in
        dacapo)
            opts="-h -V --help --version bench help"
            ;;
        dacapo__subcmd__bench__subcmd__net)
            opts="-l -h --listen --what --help [HOST[:PORT]]... <FILE>"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            case "${prev}" in
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    ;;
                --what)
                    COMPREPLY=($(compgen -W "all bulk" -- "${cur}"))
                    ;;
                -w)
                    COMPREPLY=($(compgen -W "all bulk" -- "${cur}"))
                    ;;
        dacapo__subcmd__help__subcmd__bench)
            opts=""
    "#;

    #[test]
    fn commands_options_and_values_are_found() {
        let found: Vec<String> = lines(SCRIPT, "dacapo", "").into_iter().collect();
        assert_eq!(
            found,
            [
                "command bench net",
                "option bench net --listen",
                "option bench net --what",
                "option bench net -l",
                "value bench net --what all",
                "value bench net --what bulk",
            ]
        );
    }
}

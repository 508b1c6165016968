/** Defines `baton completion`, which prints the script with which a shell completes baton's command lines. */
import { BatonError } from "../../../src/base/errors.ts";
import { didYouMean } from "../../../src/base/support/did_you_mean.ts";
import { defineCommand } from "../../command.ts";
import { exitCodes } from "../../../src/base/exit_codes.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

export const completionCommand = defineCommand({
  name: "completion",
  summary: "print the completion script of a shell",
  usage: "bash|zsh|fish",
  details: [
    "The script completes commands, options, their values, and names of locks, elections, barriers and pools. It " +
    "reads the names from the server, but starts no keeper. zsh and fish show what commands and options mean; bash " +
    "shows it in a list of choices.",
  ],
  examples: [
    ["baton completion bash >/etc/bash_completion.d/baton", "for all users"],
    ["source <(baton completion bash)", "for this shell only"],
    ["baton completion zsh >/usr/local/share/zsh/site-functions/_baton", "for zsh"],
    ["baton completion fish >~/.config/fish/completions/baton.fish", "for fish"],
  ],
  settings: {},
  runsNothing: true,
  completes: shells,
  // deno-lint-ignore require-await -- a command is asynchronous, and this one does not wait
  async run({ names: [name, ...more], io }) {
    if (name === undefined) {
      throw new BatonError(
        "USAGE",
        "baton completion needs a shell: bash, zsh or fish, as in: baton completion bash",
      );
    }
    if (more.length > 0 || !isShell(name)) {
      const given = [name, ...more].join(" ");
      throw new BatonError(
        "USAGE",
        `baton completion takes bash, zsh or fish, not "${given}"${didYouMean(given.toLowerCase(), shells)}`,
      );
    }
    io.out(completionScripts[name]);
    return exitCodes.SUCCESS;
  },
});

function isShell(name: string): name is Shell {
  return shells.some((shell) => shell === name);
}

/**
 * The scripts for each shell. They run `baton __complete ARG…`, which prints the kind of the completions, and then one
 * completion per line.
 */
const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# baton completion bash: source it, or save it as /usr/share/bash-completion/completions/baton
# Sets plain to the word without quotation marks, and open to the one that is not closed. Nothing is expanded.
_baton_plain() {
  local text=$1 c i
  plain= open=
  for ((i = 0; i < \${#text}; i++)); do
    c=\${text:i:1}
    if [[ $c == '\\' && $open != "'" ]]; then
      i=$((i + 1))
      [[ -n $open && \${text:i:1} != ['"\\$\`'] ]] && plain+='\\'
      plain+=\${text:i:1}
    elif [[ -z $open && $c == [\\'\\"] ]]; then
      open=$c
    elif [[ -n $open && $c == "$open" ]]; then
      open=
    else
      plain+=$c
    fi
  done
}
_baton() {
  local cur=\${COMP_WORDS[COMP_CWORD]} kind line glued= skip word plain open program i width=0
  local -a words=() meanings=()
  # bash splits words at : and =, which are part of the arguments of baton.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ ( $word == [:=]* || -n $glued ) && \${#words[@]} -gt 0 ]]; then
      words[\${#words[@]} - 1]+=$word
    else
      words+=("$word")
    fi
    glued=
    [[ $word == *[:=] ]] && glued=yes
  done
  skip=\${words[\${#words[@]} - 1]}
  [[ $cur == [:=]* ]] && cur=\${cur##*[:=]}
  _baton_plain "\${COMP_WORDS[0]}"
  program=\${plain/#~\\//"$HOME"/}
  _baton_plain "\${skip%"$cur"}"
  skip=$plain
  for i in "\${!words[@]}"; do
    _baton_plain "\${words[i]}"
    words[i]=$plain
  done
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS= read -r line; do
      word=\${line%%$'\\t'*}
      meanings+=("\${line:\${#word} + 1}")
      line=\${word#"$skip"}
      case $open in
        "'") line=\${line//"'"/"'\\\\''"} ;;
        '"') line=$(printf %s "$line" | sed 's/["\\\\$\`]/\\\\&/g') ;;
        *) line=$(printf %q "$line") ;;
      esac
      COMPREPLY+=("$line")
      (( \${#line} > width )) && width=\${#line}
    done
  } < <("$program" __complete "\${words[@]}" 2>/dev/null)
  case $kind in
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    commands) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
    *)
      # bash knows no descriptions. They are added where it only lists what is possible, and inserts nothing.
      if [[ \${COMP_TYPE-} == @(63|33|64) ]] && (( \${#COMPREPLY[@]} > 1 )); then
        for i in "\${!COMPREPLY[@]}"; do
          [[ -n \${meanings[i]} ]] || continue
          printf -v line '%-*s  (%s)' "$width" "\${COMPREPLY[i]}" "\${meanings[i]}"
          COMPREPLY[i]=\${line:0:\${COLUMNS:-80} - 1}
        done
      fi
      ;;
  esac
}
complete -F _baton baton
`,
  zsh: `#compdef baton
# baton completion zsh: save it as _baton in a folder of $fpath, or source it after compinit
_baton() {
  local -a lines
  local program=\${(Q)words[1]}
  lines=("\${(@f)$("\${program/#\\~\\//$HOME/}" __complete "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  case $lines[1] in
    files) _files ;;
    commands) _command_names -e ;;
    *)
      local line
      local -a described plain
      for line in "\${(@)lines[2,-1]}"; do
        if [[ $line == *$'\\t'* ]]; then
          described+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
        else
          plain+=("$line")
        fi
      done
      (( $#described )) && _describe -t baton 'baton' described
      (( $#plain )) && compadd -- "\${(@)plain}"
      ;;
  esac
}
if [ "$funcstack[1]" = "_baton" ]; then _baton "$@"; else compdef _baton baton; fi
`,
  fish: `# baton completion fish: save it as ~/.config/fish/completions/baton.fish
function __baton_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct | string replace -r '^["\\']' '' | string unescape)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l lines ($program __complete $words[2..-1] "$typed" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case commands
            __fish_complete_command
        case '*'
            test (count $lines) -gt 1; and printf '%s\\n' $lines[2..-1]
    end
end
complete -c baton -f -a '(__baton_complete)'
`,
};

/// The scripts that shells load. They call `credmgr completion words`, which prints lines of a word, a tab and its
/// meaning. A line that starts with a tab names other things to offer, such as files.
enum CompletionScript {
  static let of = ["bash": bash, "zsh": zsh, "fish": fish]

  /// bash splits words at `:` and `=`, so the script joins them again, and removes from each completion the part that
  /// bash already has.
  private static let bash = #"""
    _credmgr() {
      local words=() word kept line besides= index=0 before=
      while ((index <= COMP_CWORD)); do
        word=${COMP_WORDS[index]}
        # Pieces of one word have no blank between them.
        if ((index > 0)) && [[ $word == [:=]* || $before == *[:=] ]] && [[ $COMP_LINE == *"$before$word"* ]]; then
          words[${#words[@]}-1]+=$word
        else
          words+=("$word")
        fi
        before=$word
        index=$((index + 1))
      done
      word=${words[${#words[@]}-1]}
      kept=${word%"${word##*[:=]}"}
      COMPREPLY=()
      while IFS= read -r line; do
        if [[ $line == $'\t'* ]]; then
          besides=${line#$'\t'}
          continue
        fi
        line=${line%%$'\t'*}
        line=${line#"$kept"}
        COMPREPLY+=("$(printf %q "$line")")
        [[ $line == *= ]] && compopt -o nospace
      done < <(credmgr completion words "${words[@]:1}" 2>/dev/null)
      word=${word#"$kept"}
      case $besides in
        files)
          compopt -o filenames
          while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word") ;;
        commands) while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -c -- "$word") ;;
      esac
    }
    complete -F _credmgr credmgr

    """#

  private static let zsh = #"""
    #compdef credmgr
    _credmgr() {
      local -a words_found open_found
      local line word help besides
      while IFS= read -r line; do
        if [[ $line == $'\t'* ]]; then
          besides=${line#$'\t'}
          continue
        fi
        word=${line%%$'\t'*}
        help=
        [[ $line == *$'\t'* ]] && help=${line#*$'\t'}
        if [[ $word == *= ]]; then
          open_found+=("${word//:/\\:}:$help")
        else
          words_found+=("${word//:/\\:}:$help")
        fi
      done < <(credmgr completion words "${(@)words[2,CURRENT]}" 2>/dev/null)
      local result=1
      (( $#words_found )) && _describe -V credmgr words_found && result=0
      (( $#open_found )) && _describe -V credmgr open_found -S '' && result=0
      case $besides in
        files) _files && result=0 ;;
        commands) _command_names -e && result=0 ;;
      esac
      return result
    }
    if [[ $funcstack[1] == _credmgr ]]; then _credmgr "$@"; else compdef _credmgr credmgr; fi

    """#

  private static let fish = #"""
    function __credmgr_words
        set -l words (commandline -opc) (commandline -ct)
        for line in (credmgr completion words $words[2..-1] 2>/dev/null)
            switch $line
                case \tfiles
                    __fish_complete_path (commandline -ct)
                case \tcommands
                    __fish_complete_command
                case '*'
                    echo $line
            end
        end
    end
    complete -c credmgr -f -a '(__credmgr_words)'

    """#
}

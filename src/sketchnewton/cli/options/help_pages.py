"""The pages that people read: the command's own, and the examples of every subcommand."""

from __future__ import annotations

HELP = """\
skn: second-order online learning at first-order cost.
A row comes in, a prediction goes out, the model learns from the answer.

commands:
  skn train DATA          learn from a stream, scoring every prediction first
  skn predict MODEL DATA  predictions of a trained model, one per line
  skn inspect MODEL       what a model is and what it has learned
  skn convert DATA OUT    rows from one format to another
  skn bench DATA          learners compared on your data, table and picture
  skn sketch DATA         the rows' principal directions, with a certified error
  skn merge FILE ...      one sketch, or one model, out of several
  skn demo                why curvature matters, in half a minute
  skn eigen COMPARISON    online learning of eigenvectors: methods compared
  skn reproduce NAME      the papers' tables and figures, in a source checkout
  skn completion SHELL    completion for bash, zsh or fish
  skn COMMAND --help      all options of a command, with examples

examples:
  skn train clicks.vw.gz --model clicks.skn --test tomorrow.vw.gz
  zcat more.gz | skn train - --resume clicks.skn --model clicks.skn
  skn predict clicks.skn today.csv > scores.txt

DATA: svmlight, VW, CSV, JSON lines, Parquet, npz; .gz .bz2 .xz .zst; - is stdin
options: --version, -h, --help
"""

TRAIN = """\
examples:
  skn train clicks.vw.gz --model clicks.skn             learn, watch the progressive loss, keep the model
  skn train day1.vw --test day2.vw --loss logistic      then score another file without learning from it
  skn train - --resume clicks.skn --model clicks.skn    go on exactly where the model stopped
  skn train big.vw --model m.skn --checkpoint-every 1000000     a crash costs a million rows at most:
  skn train big.vw --model m.skn --resume m.skn                 finishes the run, to the same last bit
  skn train clicks.vw --passes 5 --holdout 10           five passes, the later ones from a cache
  skn train digits.svm --multiclass 10                  one of ten classes
  skn train digits.svm --positive 7                     class 7 against all others
  skn train prices.csv --label price --clip 500         regression with labels up to 500

The progressive loss scores each prediction before its row is learned: an honest estimate from one pass.
Ctrl-C ends the run cleanly, with the model of what was learned so far.
"""

PREDICT = """\
examples:
  skn predict clicks.skn today.svm > scores.txt
  skn predict clicks.skn today.svm.gz --link --output probabilities.txt

The labels in DATA are read and ignored.
"""

CONVERT = """\
examples:
  skn convert clicks.vw.gz clicks.svm          names become the numbers that training would use
  skn convert table.csv --label y table.vw
  skn convert day*.svm - --to jsonl | head

The format of OUT is told by its name or by --to; OUT appears when it is whole.
"""

BENCH = """\
examples:
  skn bench clicks.vw                                  every learner, a small grid each, one pass
  skn bench clicks.vw --rows 20000 --output bench.png  on the first rows alone, with a picture

Each learner is run with each value of its grid; the best progressive loss is shown, with the time of one run.
The picture needs matplotlib: pip install 'sketchnewton[plot]'
"""

COMPLETION = """\
examples:
  skn completion bash > ~/.local/share/bash-completion/completions/skn
  skn completion zsh > "${fpath[1]}/_skn"
  skn completion fish > ~/.config/fish/completions/skn.fish
"""

INSPECT = """\
examples:
  skn inspect clicks.skn
  skn inspect clicks.skn --json | jq .spectrum
"""

SKETCH = """\
examples:
  skn sketch clicks.svm.gz --kind rfd --size 50 -o clicks.skn    sketch, save, print the spectrum
  skn sketch clicks.svm --target-error 0.01 -o clicks.skn        as large as a certified error of 1% needs
  skn sketch clicks.svm --plot spectrum.png                      and draw it

A sketch B of the rows A stands for the matrix A'A; the error bound is certified for ||A'A - (B'B + ridge I)||.
The labels in DATA are read and ignored. --plot needs matplotlib: pip install 'sketchnewton[plot]'
"""

MERGE = """\
examples:
  skn merge monday.skn tuesday.skn -o both.skn

Sketches give a sketch of all rows, with a certified error that is as good as that of one sketch of them all.
Models trained on different rows with the same options give one model: its weights are the mean, weighted by
what each model knows in each direction.
"""

DEMO = """\
examples:
  skn demo                              the full comparison, half a minute or so
  skn demo --quick --output small.png   smaller data, a few seconds

The picture needs matplotlib: pip install 'sketchnewton[plot]'
"""

EIGEN = """\
examples:
  skn eigen alternating                          the sequence that defeats following the leader
  skn eigen stochastic --n 40 --rounds 4000      independent matrices, larger
  skn eigen table1 --output table1.png           growth of every method's regret, as table and picture

Regret is what the best fixed unit vector would have gained more. The picture needs matplotlib:
pip install 'sketchnewton[plot]'
"""

REPRODUCE = """\
examples:
  skn reproduce                        the list of experiments
  skn reproduce son-figure1 --quick    one of them, small
  skn reproduce --all --output report  all of them, hours; report/report.html opens in a browser

Results are kept by content in OUTPUT/cache: a run that was interrupted goes on where it stopped. Data sets that
are missing are listed with the place to get them. The report needs matplotlib: pip install 'sketchnewton[plot]'
"""

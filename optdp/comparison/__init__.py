"""The same linear program for every backend, side by side: times, residuals, the real epsilon of what each returned.

process     a backend in a process of its own, whatever it does there
measure     what is measured in that process
rows        what came of it, and on which machine
run         every backend on every problem, row by row
sets        lists of problems, and the checksums of their programs
results     files of rows
statistics  success rates, shifted geometric means, performance profiles
tables      all of it in a terminal
page        all of it as a page; `charts` draws
markdown    all of it for the documentation
"""

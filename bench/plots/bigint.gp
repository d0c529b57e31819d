# Draws bench/results/bigint.svg, products of two integers of one length: gnuplot bench/plots/bigint.gp
set terminal svg size 720,440 dynamic enhanced background 'white'
set output 'bench/results/bigint.svg'
set datafile separator ','
set logscale y
set logscale x 2
set xlabel 'bytes of each factor'
set ylabel 'microseconds'
set format x '2^{%L}'
set key left top
set grid
size_of(batch, a, b) = batch == 1 && a == b ? a : NaN
file = 'bench/results/bigint.csv'
plot file every ::1 using (size_of($1, $2, $3)):6 with points pt 7 title 'GMP, one core', \
     file every ::1 using (size_of($1, $2, $3)):4 with points pt 5 title 'H200, schoolbook by tensor cores', \
     file every ::1 using (size_of($1, $2, $3)):5 with points pt 9 title 'H200, number-theoretic transforms'

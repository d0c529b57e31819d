# Columns: m, us, floor, cuBLAS. `peers` has blocks: a name, then m and us.
load plots.'/common.gp'
set title heading noenhanced
set xlabel 'm, rows of A'
set ylabel 'time, us'
set logscale x 2
set logscale y 10
set yrange [40:8000]
set grid xtics ytics lc rgb '#dddddd'
set xrange [0.85:4800]
set key inside left top vertical
set style data linespoints
plot data using 1:4 lc rgb library lw 2 dt 2 pt 6 title 'cuBLAS f16', \
     for [i=0:peer_count-1] peers index i using 1:2 with points pt 4+2*i ps 1.2 lw 1.5 \
         lc rgb word('#777777 #b08900 #5d7f9c #9c5d7f', 1+i%4) title columnheader(1), \
     data using 1:2 lc rgb ours lw 2.5 pt 7 title 'Tilus in C, u4', \
     data using 1:3 with lines lc rgb least lw 2 title 'read floor (estimate), u4'
